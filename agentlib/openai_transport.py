"""Drive the OpenAI SDK.

The SDK opens the stream: its client knows keys, proxies and headers. The bytes of the answer are
then read here, by this project's own decoder: the same rules as for a recorded stream, strict
JSON, strict UTF-8, and a bound on one event that applies before anything is buffered. The SDK's
retries are off, since the opening loop owns them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from agentlib.errors import OpenFailure
from agentlib.failures import IdleTimeout, ProtocolViolation, ResponseFailure, StreamCut
from agentlib.jsonvalues import quote
from agentlib.openai_bodies import end_early
from agentlib.openai_clients import make_client, sdk
from agentlib.openai_phases import describe, sent_by, unanswered
from agentlib.retry import QUOTA_CODES, may_pass, retry_after, should_retry
from agentlib.scrubbing import chain, scrubbed, unless_quoting, without_secret
from agentlib.sse import (
    DONE_EVENT,
    MAX_EVENT_BYTES,
    EventStreamDecoder,
    EventStreamError,
    ServerSentEvent,
    decode_event,
)

if TYPE_CHECKING:
    from agentlib.openai_clients import AsyncSDKClient, SDKAnswer, SDKRefusal

# As long as the SDK may wait for the connection, and then for each piece of the answer.
SDK_TIMEOUT_SECONDS = 30.0
# Compressed, a small packet can unpack to gigabytes before any bound is applied.
PLAIN_BYTES = {"accept-encoding": "identity"}
EVENT_STREAM = "text/event-stream"
# What a proxy in trouble sends for a body.
BLANK = b"\0 \t\r\n"
HEAD_BYTES = 1024
# Enough for a whole reason of a provider's, and little of a page.
MAX_REASON_CHARACTERS = 1_000
IDEMPOTENCY_KEY = "idempotency-key"

Tee = Callable[[bytes], None]
# The endpoint of the SDK's client that speaks each provider's API.
ENDPOINTS: dict[str, Callable[[Any], Any]] = {
    "responses": attrgetter("responses.create"),
    "chat": attrgetter("chat.completions.create"),
}


class OpenAITransport:
    """Opens streams through the OpenAI SDK.

    `client` is used as it is given, and stays the caller's to close; without one, a client is
    made from OPENAI_API_KEY and OPENAI_BASE_URL, or the arguments, and `aclose` closes it. `tee`
    is handed the bytes of each stream as they come. Raises OpenFailure where there is no key.
    """

    def __init__(
        self,
        client: AsyncSDKClient | None = None,
        *,
        provider: str = "responses",
        api_key: str | None = None,
        base_url: str | None = None,
        max_event_bytes: int = MAX_EVENT_BYTES,
        tee: Tee | None = None,
    ) -> None:
        self._owned = client is None
        self._client = client if client is not None else make_client(api_key, base_url)
        plain = self._client.with_options(max_retries=0, timeout=SDK_TIMEOUT_SECONDS)
        self._create = ENDPOINTS[provider](plain)
        self._max_event_bytes = max_event_bytes
        self._tee = tee

    async def open(self, request: Mapping[str, Any], *, idempotency_key: str = "") -> SDKStream:
        """Acquire one stream by one request. Raises OpenFailure.

        `idempotency_key`, where there is one, goes out as the header of that name. The SDK's error
        is chained, unless it quotes the key of the client.
        """
        own = {IDEMPOTENCY_KEY: idempotency_key} if idempotency_key else {}
        key = self._client.api_key
        try:
            stream = await self._create(**request, extra_headers={**PLAIN_BYTES, **own})
        except Exception as error:  # noqa: BLE001 - the HTTP library's, where the SDK does not look
            failure, cause = open_failure(error, key), unless_quoting(error, key)
        else:
            decoder = EventStreamDecoder(self._max_event_bytes)
            return SDKStream(stream, decoder, self._tee, key)
        raise failure from cause

    async def aclose(self) -> None:
        """Close the client, where this transport made it."""
        if self._owned:
            await self._client.close()


class SDKStream:
    """An acquired stream of the SDK: decoded native events, and None for bytes without one.

    `[DONE]` is an event, DONE_EVENT. `blank` is whether all bytes so far were white space or NUL,
    and `head` is the first of them, up to HEAD_BYTES.
    """

    def __init__(
        self,
        stream: SDKAnswer,
        decoder: EventStreamDecoder,
        tee: Tee | None,
        secret: str = "",
    ) -> None:
        self._stream = stream
        self._decoder = decoder
        self._tee = tee
        self._secret = secret
        self._chunks: AsyncIterator[bytes] = stream.response.aiter_raw()
        self._ready: deque[ServerSentEvent] = deque()
        self._fault: EventStreamError | None = None
        self._started = False
        self.blank = True
        self.head = b""

    @property
    def media_type(self) -> str:
        """The content's type as the server names it, in lower case, without parameters."""
        seen: str = self._stream.response.headers.get("content-type", "")
        return seen.partition(";")[0].strip().lower()

    async def read_body(self, limit: int) -> bytes:
        """Read the content as it is, up to `limit` bytes, in place of its events.

        For content that is no event stream. Raises as reading an event does.
        """
        body = bytearray()
        with suppress(StopAsyncIteration):
            while len(body) < limit:
                body += await self._next_chunk()
        return bytes(body[:limit])

    def __aiter__(self) -> SDKStream:
        """Return the stream itself: it can be read once."""
        return self

    async def __anext__(self) -> Mapping[str, Any] | None:
        """Return the next event. Raises a ResponseFailure where reading fails."""
        if not self._started:
            self._started = True
            self._refuse_other_content()
        if not self._ready:
            if self._fault is not None:
                raise _violation(self._fault) from self._fault
            await self._fill()
        if not self._ready:
            return None
        event = self._ready.popleft()
        if event.done:
            return DONE_EVENT
        if event.empty:
            return None
        try:
            return _decoded(event, self._secret)
        except EventStreamError as error:
            raise _violation(error) from error

    def scrub(self, failure: ResponseFailure) -> None:
        """Take the key out of a failure's texts, which may quote what the server sent."""
        without_secret(failure, self._secret)

    async def aclose(self) -> None:
        """Close the HTTP response; a connection with unread bytes is not used again."""
        try:
            await self._stream.close()
        finally:
            await end_early(self._chunks)

    async def _next_chunk(self) -> bytes:
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the HTTP library raises while it reads
            failure, cause = _broken(error), unless_quoting(error, self._secret)
        else:
            self._take(chunk)
            return chunk
        raise failure from cause

    def _take(self, chunk: bytes) -> None:
        if self._tee is not None:
            self._tee(chunk)
        self.blank = self.blank and not chunk.strip(BLANK)
        if len(self.head) < HEAD_BYTES:
            self.head = (self.head + chunk)[:HEAD_BYTES]

    async def _fill(self) -> None:
        chunk = await self._next_chunk()
        try:
            self._ready.extend(self._decoder.feed(chunk))
        except EventStreamError as error:
            self._ready.extend(error.events)
            self._fault = error

    def _refuse_other_content(self) -> None:
        headers = self._stream.response.headers
        if self.media_type != EVENT_STREAM:
            seen = scrubbed(headers.get("content-type", ""), self._secret)
            reason = f"expected content of type {EVENT_STREAM}, saw {quote(seen)}"
            raise ProtocolViolation(reason, check="lifecycle")
        encoding = headers.get("content-encoding", "identity")
        if encoding != "identity":
            seen = quote(scrubbed(encoding, self._secret))
            reason = f"expected plain bytes, as asked for; saw the encoding {seen}"
            raise ProtocolViolation(reason, check="lifecycle")


def _broken(error: Exception) -> ResponseFailure:
    if type(error).__name__.endswith("Timeout"):
        reason = f"no byte came for {SDK_TIMEOUT_SECONDS:g} s: {describe(error)}"
        return IdleTimeout(reason, check="completed")
    reason = f"the connection failed before the terminal event: {describe(error)}"
    return StreamCut(reason, check="completed")


def open_failure(error: Exception, secret: str) -> OpenFailure:
    """Return what `error`, raised by the SDK before there was an answer to read, means."""
    openai = sdk()
    if isinstance(error, openai.APIStatusError):
        return _refused(error, secret)
    if isinstance(error, openai.APIConnectionError):
        return unanswered(error)
    return _unforeseen(error)


def _refused(error: SDKRefusal, secret: str) -> OpenFailure:
    # Some servers name the reason as the type alone.
    words = [word for word in (error.code, error.type) if isinstance(word, str) and word]
    code = next((word for word in words if word in QUOTA_CODES), next(iter(words), None))
    reason = error.message.removeprefix(f"Error code: {error.status_code} - ")
    return _refusal(
        error.status_code,
        quote(scrubbed(reason, secret), MAX_REASON_CHARACTERS),
        error.response.headers,
        scrubbed(code, secret) if code is not None else None,
        scrubbed(error.param, secret) if isinstance(error.param, str) else None,
    )


def _unforeseen(error: Exception) -> OpenFailure:
    # A refusal whose body breaks off is a refusal all the same: its status stands in the chain.
    answers = (getattr(each, "response", None) for each in chain(error))
    refused = next((answer for answer in answers if answer is not None), None)
    if refused is None:
        return OpenFailure(f"the SDK opened no stream: {describe(error)}", sent=sent_by(error))
    return _refusal(refused.status_code, describe(error), refused.headers)


def _refusal(
    status: int,
    words: str,
    headers: Mapping[str, str],
    code: str | None = None,
    param: str | None = None,
) -> OpenFailure:
    return OpenFailure(
        f"the server answered {status}: {words}",
        status=status,
        code=code,
        param=param,
        retry_after=retry_after(headers, time.time()),
        should_retry=should_retry(headers),
        retryable=may_pass(status, should_retry(headers)),
    )


_ENDS_BADLY = frozenset({"error", "response.failed", "response.incomplete", "response.cancelled"})


def _is_error(native: Mapping[str, Any]) -> bool:
    return "error" in native or native.get("type") in _ENDS_BADLY


def _decoded(event: ServerSentEvent, secret: str) -> Mapping[str, Any]:
    # Of an error nothing is ever released; its text goes into messages and logs.
    try:
        native = decode_event(event)
    except EventStreamError as error:
        if scrubbed(event.data, secret) == event.data:
            raise
        unreadable = EventStreamError(scrubbed(error.reason, secret), event=error.event)
    else:
        return _without(native, secret) if _is_error(native) else native
    # Raised here, it leaves the first one behind, which quotes the data.
    raise unreadable


def _without(value: Any, secret: str) -> Any:
    if isinstance(value, str):
        return scrubbed(value, secret)
    if isinstance(value, list):
        return [_without(each, secret) for each in value]
    if isinstance(value, dict):
        return {scrubbed(name, secret): _without(each, secret) for name, each in value.items()}
    return value


def _violation(error: EventStreamError) -> ProtocolViolation:
    return ProtocolViolation(error.reason, check="lifecycle")
