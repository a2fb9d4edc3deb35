"""Cassettes: recordings for tests, in the form of VCR, as YAML or JSON.

YAML can name a part and repeat it, so that a small file stands for a vast one, and can ask for
objects of any class. Here it is text, lists and mappings within bounds, an alias is the same object
once more, and a tag means nothing, but for `!!binary`, and the `!binary` of Ruby.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from agentlib.jsonvalues import MAX_NESTING, StrictJSONError, loads_unique, one_line
from agentlib.recordings.exchanges import Exchange
from agentlib.recordings.sniff import head
from agentlib.sse import BOM

MAX_CASSETTE_BYTES = 16 * 1024 * 1024
# An interaction has some fifty nodes. A few bytes make one, which takes many times as many.
MAX_NODES = 200_000
# Only comments, and what VCR says of itself, may stand before: a stream may have any line.
_YAML = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:(?:#[^\n]*|---[^\n]*|(?:version|recorded_with):[^\n]*|\r)?\n)*"
    rb"(?:http_)?interactions:"
)
_JSON = re.compile(rb'\{\s*(?:"version"\s*:\s*\d+\s*,\s*)?"(?:http_)?interactions"\s*:')
NO_YAML = "this is a cassette in YAML: to read it, install PyYAML (pip install pyyaml)"


def is_cassette(source: bytes) -> bool:
    """Say whether bytes are a cassette: a list of interactions, in YAML or JSON."""
    start = head(source)
    if start.startswith(b"{"):
        return _JSON.match(start) is not None
    return _YAML.match(source) is not None


def read_cassette(source: bytes) -> tuple[Iterable[Exchange], list[str]]:
    """Return the interactions of a cassette, and in one sentence what of it cannot be read."""
    if len(source) > MAX_CASSETTE_BYTES:
        return [], [f"the cassette is larger than {MAX_CASSETTE_BYTES:,} bytes: cut it"]
    try:
        text = source.removeprefix(BOM).decode()
        value = loads_unique(text) if head(source).startswith(b"{") else _load(text)
    except ModuleNotFoundError:
        return [], [NO_YAML]
    except (StrictJSONError, UnicodeDecodeError, _Refused) as error:
        # Not the text where it broke off: that may be half a secret.
        return [], [f"the cassette cannot be read: {one_line(str(error).partition(', near ')[0])}"]
    found = value.get("interactions", value.get("http_interactions"))
    if not isinstance(found, list):
        return [], ["the cassette has no list of interactions"]
    return (_exchange(each, number) for number, each in enumerate(found, 1)), []


def _exchange(interaction: Any, number: int) -> Exchange:
    request, response = _part(interaction, "request"), _part(interaction, "response")
    headers = _headers(response)
    kinds = [value for name, value in headers if name.lower() == "content-type"]
    line = getattr(interaction, "line", None)
    return Exchange(
        f"interaction {number}" + (f", line {line}" if line is not None else ""),
        _text(request.get("method")).upper(),
        _text(request.get("uri")) or _text(request.get("url")),
        _body(request),
        kinds[0] if kinds else "",
        _body(response),
        (*_headers(request), *headers),
    )


def _body(message: dict[str, Any]) -> bytes:
    body = message.get("body", message.get("content"))
    if isinstance(body, dict):
        packed = body.get("base64_string")
        if isinstance(packed, str):
            with suppress(binascii.Error, ValueError):
                return base64.b64decode(packed)
        body = body.get("string")
    if isinstance(body, bytes):
        return body
    return _text(body).encode(errors="replace")


def _headers(message: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for name, values in _part(message, "headers").items():
        each = values if isinstance(values, list) else [values]
        found += [(name, _text(value)) for value in each]
    return found


def _part(value: Any, name: str) -> dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else ""


class _Refused(ValueError):
    """Raised for YAML that is broken, or beyond a bound."""


def _load(text: str) -> dict[str, Any]:
    import yaml

    from agentlib.recordings.yaml_loader import CassetteLoader

    try:
        value = CassetteLoader(text, MAX_NODES, MAX_NESTING).get_data()
    except yaml.MarkedYAMLError as error:
        # Not its whole text: that shows the line, and a line may hold a secret.
        why = " ".join(filter(None, (error.context, error.problem)))
        line = f", at line {error.problem_mark.line + 1:,}" if error.problem_mark else ""
        raise _Refused(f"{why}{line}") from error
    except yaml.YAMLError as error:
        raise _Refused(str(error)) from error
    return value if isinstance(value, dict) else {}
