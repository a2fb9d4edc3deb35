"""Recordings in JSON that no standard describes: arrays of events, and requests with answers.

Which names hold what is a table, from test tools and network logs in use: the test agent of
Datadog (a `request` beside a `response` with a `body`), the SDKs' snapshots of answers (an array
of texts, each of them one body), proxies and browsers that export a list of exchanges, and
scripts that dump what a client yielded, event by event.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentlib.jsonvalues import StrictJSONError, loads_unique
from agentlib.providers.bodies import api_of_body, body_events
from agentlib.recordings.boundaries import detect_provider
from agentlib.recordings.exchanges import Exchange
from agentlib.recordings.sniff import head, is_one_document, parse_document
from agentlib.recordings.writing import DONE_BLOCK
from agentlib.sse import BOM

# Where a list of events or exchanges stands, if it is not the whole document.
_LISTS = ("events", "chunks", "stream", "responses", "exchanges", "requests", "entries", "log")
# Where an event stands that has its own object around it.
DONE = "[DONE]"
_EVENT_IN = ("data", "chunk", "event", "value", "payload")
_BODY = ("body", "content", "text", "data", "chunks", "events", "base64_string", "string")
_OUTER_BODY = ("responseBody", "response_body", "responseText")
_REQUEST_BODY = ("body", "json", "postData", "data", "text", "content", "string")
_OUTER_REQUEST = ("requestBody", "request_body", "postData")
_URL = ("url", "uri", "requestUrl", "request_url", "path")
_METHOD = ("method", "requestMethod", "request_method")
_KIND = ("mimeType", "contentType", "content_type", "mime_type")
# Where the events of a body come from.
WHOLE_BODY = "a whole response, which was not streamed"
# A whole answer, which has no events.
_WHOLE = frozenset(("chat.completion", "response", "message"))
_STREAM_LINE = re.compile(r"\ufeff?(?:data|event|id|retry)?:")
_ENDS_A_BODY = re.compile(r"\n\r?\n\s*\Z")


def is_json_recording(source: bytes) -> bool:
    """Say whether bytes are one JSON document that holds events, or exchanges, in a known shape."""
    return head(source).startswith((b"{", b"[")) and any(True for _ in _found(_document(source)))


def read_json_recording(source: bytes) -> tuple[Iterable[Exchange], list[str]]:
    """Return the exchanges of such a document; an array of events is an answer without request."""
    return _found(_document(source)), []


def _document(source: bytes) -> object:
    lines = [line for line in source.removeprefix(BOM).split(b"\n") if line.strip()]
    return parse_document(source) if is_one_document(source, lines) else None


def _found(document: object) -> Iterator[Exchange]:
    if isinstance(document, Mapping):
        api = api_of_body(document)
        if api:
            events = body_events(api, document)
            yield Exchange(WHOLE_BODY, body=b"".join(map(_block, events)))
            return
        exchange = None if _api_of([document]) else _exchange(document, "the recording")
        if exchange is not None:
            yield exchange
            return
        # `log` of an archive and `interactions` of a cassette were looked for before.
        document = next((document[n] for n in _LISTS if isinstance(document.get(n), list)), None)
    if not isinstance(document, list) or not document:
        return
    body = _events(document)
    if body is not None:
        yield Exchange(f"an array of {len(document)} events", body=body)
        return
    for number, each in enumerate(document, 1):
        found = _exchange(each, f"entry {number}") if isinstance(each, Mapping) else None
        if found is not None:
            yield found
        elif isinstance(each, str) and _is_body(each):
            yield Exchange(f"entry {number}", body=each.encode(errors="replace"))


def _events(values: Sequence[object]) -> bytes | None:
    """Return values as one event stream, or None where one of them is no event."""
    if values and all(isinstance(each, str) for each in values):
        texts = [str(each) for each in values]
        if _STREAM_LINE.match(texts[0].lstrip()):
            # Each is a body of its own, or they are pieces of one, as a client received them.
            several = len(texts) > 1 and all(map(_is_body, texts))
            return None if several else "".join(texts).encode(errors="replace")
    found = [_event(value) for value in values]
    if not _api_of(found):
        return None
    return b"".join(DONE_BLOCK if each == DONE else _block(each) for each in found)


def _api_of(events: Sequence[object]) -> str:
    """Return the API whose events these are, "" where one of them is none, or no API's."""
    objects = [each for each in events if isinstance(each, dict)]
    done = sum(each == DONE for each in events)
    kinds = ({each.get("object"), each.get("type")} for each in objects)
    if len(objects) + done < len(events) or any(not _WHOLE.isdisjoint(kind) for kind in kinds):
        return ""
    api = detect_provider(objects)
    return api if api != "unknown" else ""


def _is_body(text: str) -> bool:
    return _STREAM_LINE.match(text) is not None and _ENDS_A_BODY.search(text) is not None


def _event(value: object) -> object:
    """Return the event that a value is, or has around it: an object, DONE, or None."""
    if isinstance(value, str):
        try:
            return DONE if value.strip() == DONE else loads_unique(value)
        except StrictJSONError:
            return None
    if not isinstance(value, dict):
        return None
    inner = next((value[n] for n in _EVENT_IN if isinstance(value.get(n), dict)), None)
    if inner is not None and _api_of([inner]):
        return inner
    packed = value.get("data")
    return _event(packed) if isinstance(packed, str) and not _api_of([value]) else value


def _block(event: object) -> bytes:
    return b"data: %b\n\n" % json.dumps(event).encode()


def _exchange(value: Mapping[str, Any], where: str) -> Exchange | None:
    response = value.get("response")
    body: bytes | None
    if isinstance(response, Mapping):
        body = _body_in(response, _BODY)
    elif isinstance(response, str | list):
        body = _body_of(response, value)
    else:
        body = _body_in(value, _OUTER_BODY)
        response = {}
    if body is None:
        return None
    answer = response if isinstance(response, Mapping) else {}
    asked = value.get("request")
    request = asked if isinstance(asked, Mapping) else value
    names = _REQUEST_BODY if request is asked else _OUTER_REQUEST
    headers = [*_headers(request), *_headers(answer)]
    kinds = [text for name, text in _headers(answer) if name.lower() == "content-type"]
    return Exchange(
        where,
        _text(request, _METHOD).upper(),
        _text(request, _URL),
        _body_in(request, names) or b"",
        kinds[0] if kinds else _text(answer, _KIND) or _text(value, _KIND),
        body,
        tuple(headers),
    )


def _body_in(message: Mapping[str, Any], names: Iterable[str]) -> bytes | None:
    held = next((message[name] for name in names if message.get(name)), None)
    return _body_of(held, message)


def _body_of(held: object, message: Mapping[str, Any]) -> bytes | None:
    if isinstance(held, Mapping):
        inner = next((name for name in _BODY if isinstance(held.get(name), str | list)), None)
        return _body_of(held[inner], held) if inner else json.dumps(held).encode()
    if isinstance(held, list):
        return _events(held) or json.dumps(held).encode()
    if not isinstance(held, str):
        return None
    if _is_base64(message):
        try:
            return base64.b64decode(held, validate=True)
        except (binascii.Error, ValueError):
            return None
    return held.encode(errors="replace")


def _is_base64(message: Mapping[str, Any]) -> bool:
    flags = (message.get(n) for n in ("base64Encoded", "base64_encoded", "isBase64", "is_base64"))
    packed = "base64_string" in message or message.get("encoding") == "base64"
    return packed or any(flag is True for flag in flags)


def _headers(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    found = message.get("headers")
    if isinstance(found, Mapping):
        for name, values in found.items():
            for each in values if isinstance(values, list) else [values]:
                yield name, each if isinstance(each, str) else ""
    for row in found if isinstance(found, list) else ():
        if isinstance(row, Mapping):
            yield _text(row, ("name",)), _text(row, ("value",))


def _text(value: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((value[name] for name in names if isinstance(value.get(name), str)), "")
