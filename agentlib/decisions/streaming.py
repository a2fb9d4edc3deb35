"""One streamed request: a transport that remembers what it saw, for the failure's class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentlib.decisions.reading import Seen
from agentlib.failures import ProtocolViolation, ResponseFailure
from agentlib.openai_transport import EVENT_STREAM, OpenAITransport, SDKStream
from agentlib.openai_whole import MAX_BODY_BYTES, WholeReply
from agentlib.sse import DONE_EVENT


class WatchedTransport:
    """Opens the streams of `transport`; `seen` describes the latest one."""

    def __init__(self, transport: OpenAITransport) -> None:
        self.seen = Seen()
        self._transport = transport

    async def open(self, request: Mapping[str, Any], *, idempotency_key: str = "") -> WatchedStream:
        """Acquire one stream, by one request. Raises OpenFailure."""
        self.seen = Seen()
        stream = await self._transport.open(request, idempotency_key=idempotency_key)
        return WatchedStream(stream, self.seen)


class WatchedStream:
    """A stream that writes down what came. Content that is no event stream is read whole."""

    def __init__(self, stream: SDKStream, seen: Seen) -> None:
        self._stream = stream
        self._seen = seen

    def __aiter__(self) -> WatchedStream:
        """Return the stream itself: it can be read once."""
        return self

    async def __anext__(self) -> Mapping[str, Any] | None:
        """Return the next event. Raises a ResponseFailure where reading fails."""
        try:
            native = await self._next()
        except ResponseFailure as failure:
            self._seen.fault = failure
            raise
        finally:
            self._seen.blank, self._seen.head = self._stream.blank, self._stream.head
        if native is not None and native is not DONE_EVENT:
            self._seen.events += 1
            self._seen.finish_reason = _finish_reason(native) or self._seen.finish_reason
            # What finished before an error was not the whole reply.
            if native.get("error") is not None:
                self._seen.finish_reason = None
        return native

    async def aclose(self) -> None:
        """Close it."""
        await self._stream.aclose()

    async def _next(self) -> Mapping[str, Any] | None:
        seen = self._stream.media_type
        if seen != EVENT_STREAM:
            body = await self._stream.read_body(MAX_BODY_BYTES)
            self._seen.whole = WholeReply(seen, body)
            raise ProtocolViolation("expected a stream of events", check="lifecycle")
        return await anext(self._stream)


def _finish_reason(native: Mapping[str, Any]) -> str | None:
    choices = native.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    reason = first.get("finish_reason") if isinstance(first, dict) else None
    return reason if isinstance(reason, str) and reason else None
