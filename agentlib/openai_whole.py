"""Ask for one whole reply through the OpenAI SDK, without streaming: blocking, or async.

The bytes of the answer are read here and interpreted elsewhere, as for a stream: the SDK parses
nothing, retries nothing, and what it raises becomes this project's own failures. One path serves
both kinds of clients; they differ in how an answer is opened, read and closed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Never, TypeAlias

import anyio

from agentlib.blocking import BlockingBody
from agentlib.failures import IdleTimeout, LimitExceeded, ResponseFailure, StreamCut
from agentlib.openai_bodies import end_early
from agentlib.openai_phases import describe
from agentlib.openai_transport import PLAIN_BYTES, open_failure

if TYPE_CHECKING:
    from agentlib.openai_clients import AsyncSDKClient, SDKClient

# Far above any reply that a limit of output tokens allows.
MAX_BODY_BYTES = 4 * 1024 * 1024
CLOSING_SECONDS = 0.75


class WholeReply(NamedTuple):
    """An answer with a status of success: its content's type in lower case, and its bytes."""

    media_type: str
    body: bytes


class Answer(NamedTuple):
    """An answer that has begun: its headers, and the iterator of its bytes."""

    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


Opened: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Answer]]


@asynccontextmanager
async def awaited(opening: Any) -> AsyncIterator[Answer]:
    """Open an answer to the SDK's async client, and close it, also for a caller who is cancelled.

    `opening` is what `with_streaming_response` returned. Raises what the SDK raises.
    """
    response = await opening.__aenter__()
    chunks: AsyncIterator[bytes] = response.http_response.aiter_raw()
    try:
        yield Answer(response.headers, chunks)
    finally:
        with anyio.move_on_after(CLOSING_SECONDS, shield=True):
            await response.close()
            await end_early(chunks)


@asynccontextmanager
async def blocking(opening: Any) -> AsyncIterator[Answer]:
    """Do the same for the SDK's client that blocks, on a path that `run_blocking` runs."""
    with opening as response:
        chunks = BlockingBody(response.http_response.iter_raw(), response.close)
        yield Answer(response.headers, chunks)


async def ask_whole(
    client: SDKClient | AsyncSDKClient,
    request: Mapping[str, Any],
    opened: Opened,
    *,
    idle: float,
    alive: Callable[[], None],
) -> WholeReply:
    """Return the whole answer to one Chat Completions request; `opened` suits the `client`.

    `alive` is called whenever something arrived: the caller bounds the whole, and `idle` is the
    SDK's bound of each wait, in seconds. Whoever is cancelled leaves no connection open. Raises
    OpenFailure where no answer began, and a ResponseFailure where it did not end well.
    """
    plain = client.with_options(max_retries=0, timeout=idle)
    create = plain.chat.completions.with_streaming_response.create
    body = bytearray()
    async with AsyncExitStack() as stack:
        try:
            opening = create(**request, extra_headers=PLAIN_BYTES)
            answer = await stack.enter_async_context(opened(opening))
        except Exception as error:
            raise open_failure(error, client.api_key) from error
        try:
            alive()
            async for chunk in answer.chunks:
                alive()
                _take(body, chunk)
        except ResponseFailure:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the HTTP library raises while it reads
            _fail(error, idle)
    return WholeReply(_media_type(answer.headers), bytes(body))


def _take(body: bytearray, chunk: bytes) -> None:
    body += chunk
    if len(body) > MAX_BODY_BYTES:
        reason = f"expected a body of at most {MAX_BODY_BYTES:,} bytes"
        raise LimitExceeded(reason, check="limits")


def _fail(error: Exception, seconds: float) -> Never:
    if type(error).__name__.endswith("Timeout"):
        reason = f"no byte came for {seconds:g} s: {describe(error)}"
        raise IdleTimeout(reason, check="completed") from error
    reason = f"the connection failed before the reply was whole: {describe(error)}"
    raise StreamCut(reason, check="completed") from error


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()
