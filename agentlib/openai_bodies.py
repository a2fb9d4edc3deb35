"""Bodies of HTTP answers, on the SDK's HTTP library: bound a refusal's, and end any one early."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

from agentlib.blocking import BlockingBody, run_blocking

if TYPE_CHECKING:
    import httpx2

# An error object has a few hundred bytes; a proxy's page some ten thousand.
MAX_REFUSAL_BYTES = 64 * 1024
# What a closed connection may still hold was received at once, in pieces of some bytes at least.
_MAX_HELD = 20_000


async def bound_refusal(response: httpx2.Response) -> None:
    """Take at most MAX_REFUSAL_BYTES of a body that comes with an error status.

    A response hook of httpx2's AsyncClient. The status is known from the head, and counts however
    the body ends; it is read for a few words, and neither unpacked nor awaited beyond the bound.
    """
    import httpx2

    if isinstance(response.stream, httpx2.AsyncByteStream):
        await _bound(response, response.stream)


def bound_sync_refusal(response: httpx2.Response) -> None:
    """Do as `bound_refusal` does, as a response hook of httpx2's Client, which blocks."""
    import httpx2

    stream = response.stream
    if isinstance(stream, httpx2.SyncByteStream):
        run_blocking(_bound(response, BlockingBody(stream, stream.close)))


async def _bound(response: httpx2.Response, stream: httpx2.AsyncByteStream | BlockingBody) -> None:
    import httpx2

    if response.is_success:
        return
    body = bytearray()
    chunks = aiter(stream)
    try:
        with suppress(httpx2.TransportError):
            async for chunk in chunks:
                body += chunk
                if len(body) >= MAX_REFUSAL_BYTES:
                    break
    finally:
        await stream.aclose()
    await end_early(chunks)
    # What is left is cut, and may be packed: nobody unpacks it.
    response.headers.pop("content-encoding", None)
    response.stream = httpx2.ByteStream(bytes(body[:MAX_REFUSAL_BYTES]))


async def end_early(chunks: AsyncIterator[bytes]) -> None:
    """Let the iterator of a body that was closed come to its end.

    It consists of generators inside generators, and not all of them close the one inside: left
    alone, that one is finished later, by a task of the event loop that nobody waits for. With the
    connection closed, they end at their next step.
    """
    with suppress(Exception):
        for _ in range(_MAX_HELD):
            await anext(chunks)
