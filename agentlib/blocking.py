"""Run an async path where every wait blocks, so that one implementation serves both callers.

A portal to an event loop in a thread would do as well, but for two things: Ctrl-C reaches a read
that blocks only in the thread of the caller, and a caller's own client, which blocks, needs no
loop. Nor does a loop that runs already, as in a notebook, stand in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Self, TypeVar

T = TypeVar("T")


def run_blocking(path: Coroutine[Any, Any, T]) -> T:
    """Run `path` in this thread, without an event loop, and return what it returns.

    Raises what it raises, and RuntimeError where it waits for an event loop after all.
    """
    try:
        path.send(None)
    except StopIteration as returned:
        return returned.value  # type: ignore[no-any-return]
    finally:
        path.close()
    raise RuntimeError("expected every wait to block, saw one for an event loop")


class BlockingBody:
    """The body of an answer that is read by blocking, with the methods of one that is awaited."""

    def __init__(self, chunks: Iterable[bytes], close: Callable[[], None]) -> None:
        self._chunks = iter(chunks)
        self._close = close

    def __aiter__(self) -> Self:
        """Return the body itself: it can be read once."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next bytes. Raises what the HTTP library raises."""
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the connection, or give it back where all was read."""
        self._close()
