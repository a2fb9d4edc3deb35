"""Ask for one whole reply through the OpenAI SDK, without streaming: blocking, or async.

The bytes of the answer are read here and interpreted elsewhere, as for a stream: the SDK parses
nothing, retries nothing, and what it raises becomes this project's own failures.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Never

import anyio

from agentlib.errors import IdleTimeout, LimitExceeded, ResponseFailure, StreamCut
from agentlib.openai_bodies import end_early
from agentlib.openai_transport import PLAIN_BYTES, describe, open_failure

if TYPE_CHECKING:
    from agentlib.openai_transport import AsyncSDKClient, SDKClient

# Far above any reply that a limit of output tokens allows.
MAX_BODY_BYTES = 4 * 1024 * 1024
CLOSING_SECONDS = 0.75


class WholeReply(NamedTuple):
    """An answer with a status of success: its content's type in lower case, and its bytes."""

    media_type: str
    body: bytes


def ask_whole(
    client: SDKClient, request: Mapping[str, Any], *, idle: float, total: float
) -> WholeReply:
    """Return the whole answer to one Chat Completions request, which blocks.

    `idle` bounds the wait for the answer and for each piece of it, `total` the whole, in seconds.
    Raises OpenFailure where no answer began, and a ResponseFailure where it did not end well.
    """
    until = time.monotonic() + total
    plain = client.with_options(max_retries=0, timeout=idle)
    opening = plain.chat.completions.with_streaming_response.create(
        **request, extra_headers=PLAIN_BYTES
    )
    try:
        response = opening.__enter__()
    except Exception as error:
        raise open_failure(error, client.api_key) from error
    body = bytearray()
    try:
        for chunk in response.http_response.iter_raw():
            _take(body, chunk)
            _keep(until, total)
    except ResponseFailure:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the HTTP library raises while it reads
        _fail(error, idle)
    finally:
        response.close()
    return WholeReply(_media_type(response.headers), bytes(body))


async def ask_whole_async(
    client: AsyncSDKClient, request: Mapping[str, Any], *, total: float, alive: Callable[[], None]
) -> WholeReply:
    """Return the same without blocking; `alive` is called whenever something arrived.

    The caller bounds the wait; the SDK bounds each read by `total`, in seconds. Whoever is
    cancelled leaves no connection open.
    """
    plain = client.with_options(max_retries=0, timeout=total)
    opening = plain.chat.completions.with_streaming_response.create(
        **request, extra_headers=PLAIN_BYTES
    )
    try:
        response = await opening.__aenter__()
    except Exception as error:
        raise open_failure(error, client.api_key) from error
    alive()
    body = bytearray()
    chunks: AsyncIterator[bytes] = response.http_response.aiter_raw()
    try:
        async for chunk in chunks:
            alive()
            _take(body, chunk)
    except ResponseFailure:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the HTTP library raises while it reads
        _fail(error, total)
    finally:
        with anyio.move_on_after(CLOSING_SECONDS, shield=True):
            await response.close()
            await end_early(chunks)
    return WholeReply(_media_type(response.headers), bytes(body))


def _take(body: bytearray, chunk: bytes) -> None:
    body += chunk
    if len(body) > MAX_BODY_BYTES:
        reason = f"expected a body of at most {MAX_BODY_BYTES:,} bytes"
        raise LimitExceeded(reason, check="limits")


def _keep(until: float, seconds: float) -> None:
    if time.monotonic() > until:
        raise IdleTimeout(f"the reply took longer than {seconds:g} s in all", check="completed")


def _fail(error: Exception, seconds: float) -> Never:
    if type(error).__name__.endswith("Timeout"):
        reason = f"no byte came for {seconds:g} s: {describe(error)}"
        raise IdleTimeout(reason, check="completed") from error
    reason = f"the connection failed before the reply was whole: {describe(error)}"
    raise StreamCut(reason, check="completed") from error


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()
