"""Take secrets out of a recording, so that what its stream says stays what it says.

What counts as a secret, and nothing else does:

- the value of a header or a cookie that SECRET_NAMES has, on any line that is no event;
- in an event, the text of a field with such a name, but not inside `arguments`, `input` or a
  schema: there a password is what the model wrote, and changing it could change the verdict;
- a literal that is shaped like a key, in any text: `sk-...`, `Bearer ...` and the others of KEYS,
  and a value of such a header wherever it stands again.

A literal is replaced by a mask of its own length, the same mask each time. So where it was
streamed in fragments, each fragment holds its part of the mask, and a text that restates them is
still equal to them. (A schema that asks for the shape of a key no longer holds.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from agentlib.transport.fragments import Blocks, Leaf, leaves, opens_response
from agentlib.transport.recorder import REDACTED

_SECRET_HEADERS = (
    *("authorization", "proxy-authorization", "cookie", "set-cookie", "api-key", "x-api-key"),
    *("x-auth-token", "x-goog-api-key", "x-amz-security-token"),
)
_SECRET_FIELDS = (
    *("api_key", "apikey", "access_token", "auth_token", "refresh_token", "session_token"),
    *("client_secret", "secret", "secret_key", "private_key", "passwd", "password", "token"),
)
# In small letters. A header's name counts in JSON as well, and a field's on a line of its own.
SECRET_NAMES = frozenset((*_SECRET_HEADERS, *_SECRET_FIELDS))
# Prose may hold what only begins like a key; a real one is long.
KEYS = {
    "API key": (
        r"(?<![A-Za-z0-9])(?:[sr]k-[A-Za-z0-9_-]{16,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"
        r"|AIza[A-Za-z0-9_-]{35}|(?:gsk|hf)_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}"
        r"|AKIA[A-Z0-9]{16}(?![A-Za-z0-9]))"
    ),
    "access token": (
        r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
        r"|xox[abprs]-[A-Za-z0-9-]{12,}|glpat-[A-Za-z0-9_-]{16,}"
        r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})"
    ),
    "bearer token": (r"(?<=[Bb]earer )(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{20,}"),
}
# What the model or a schema says, not the server: only literals count in it.
_SPOKEN = frozenset({"arguments", "input", "parameters", "input_schema", "schema"})
# A field "token" may be a word of the text, with its probability.
_KEY_LIKE = re.compile(r"(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{20,}")
_TOKEN = re.compile(rb'"token"\s*:\s*"[A-Za-z0-9._~+/=-]{20}')
_SHORTEST_LITERAL = 12
# A recording holds a few keys; whoever sends thousands wants to keep a reader busy.
_MOST_KNOWN = 64
_NAMES = "|".join(re.escape(name) for name in sorted(SECRET_NAMES, key=len, reverse=True))
_HEADER = re.compile(
    rf"(?i)(?<![\w-])({_NAMES})([\"']?[ \t]*:[ \t]*)(?!\[redacted)([^\s\]][^\]\r\n]*)"
)
# A text has no secret where it has none of these: looking for them is far quicker.
_KEY_SIGNS = (
    *("sk-", "rk-", "sk_", "rk_", "AIza", "gsk_", "hf_", "xai-", "AKIA"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox", "glpat-", "eyJ", "earer "),
)
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token)[ \t]+")

Form = Literal["sse", "jsonl"]


class Redactor:
    """Takes the secrets out of the parts of one recording; equal ones get equal masks.

    `headers` are those of its requests and answers, which are not kept at all: what is secret in
    them is counted, and is one wherever it stands again.
    """

    def __init__(self, headers: Iterable[Mapping[str, str]] = ()) -> None:
        self._masks: dict[str, str] = {}
        self._found: dict[str, set[str]] = {}
        self._known: set[str] = set()
        self._keys = self._compile()
        for each in headers:
            for name, value in each.items():
                if name.lower() in SECRET_NAMES:
                    self._header(name, value)

    @property
    def note(self) -> str | None:
        """What was redacted, in one sentence: the number of different secrets, by kind."""
        counts = {kind: len(values) for kind, values in sorted(self._found.items()) if values}
        if not counts:
            return None
        kinds = ", ".join(f"{kind} ({n:,})" if n > 1 else kind for kind, n in counts.items())
        total = sum(counts.values())
        return f"{total:,} secret{'s' if total > 1 else ''} redacted: {kinds}"

    def body(self, body: bytes, form: Form, events: Iterable[Mapping[str, Any] | None]) -> bytes:
        """Return `body` without its secrets; `events` are those read from it, None for `[DONE]`.

        Bytes without a secret are returned as they are, and an event without one keeps its text.
        """
        if not self._is_suspect(body, events):
            return body
        blocks = Blocks(body, form)
        for line in blocks.lines:
            for found in _HEADER.finditer(line):
                self._header(found[1], found[3])
        blocks.rewrite_lines(self._line)
        self._fragments(blocks)
        blocks.rewrite_events(lambda event: self._value(event, spoken=False), self._line)
        return blocks.join()

    def value(self, value: Any) -> Any:
        """Return a copy of a JSON value without its secrets."""
        return self._value(value, spoken=False)

    def text(self, text: str) -> str:
        """Return a text with each literal that is shaped like a key, or is known, masked."""
        return self._keys.sub(self._mask, text) if self._holds_key(text) else text

    def _compile(self) -> re.Pattern[str]:
        known = sorted(self._known, key=len, reverse=True)
        parts = [re.escape(value) for value in known]
        return re.compile("|".join([*parts, *(f"(?:{keys})" for keys in KEYS.values())]))

    def _is_suspect(self, body: bytes, events: Iterable[Mapping[str, Any] | None]) -> bool:
        small = body.lower()
        if any(name.encode() in small for name in SECRET_NAMES - {"token"}) or _TOKEN.search(body):
            return True
        texts: dict[object, list[str]] = {}
        for key, leaf in _keyed(events):
            texts.setdefault(key, []).append(leaf.text)
        joined = ("".join(pieces) for pieces in texts.values())
        return any(self._holds_key(text) for text in (body.decode("latin-1"), *joined))

    def _holds_key(self, text: str) -> bool:
        signs = (*_KEY_SIGNS, *self._known)
        return any(sign in text for sign in signs) and self._keys.search(text) is not None

    def _learn(self, value: str) -> None:
        token = _SCHEME.sub("", value.strip(), count=1)
        plain = token.isascii() and token.isprintable() and not set(token) & set('"\\ ')
        new = token not in self._known and len(self._known) < _MOST_KNOWN
        if plain and new and len(token) >= _SHORTEST_LITERAL:
            self._known.add(token)
            self._keys = self._compile()

    def _header(self, name: str, value: str) -> None:
        name, value = name.lower(), value.strip()
        if value.startswith(REDACTED):
            return
        self._found.setdefault(name, set()).add(_SCHEME.sub("", value, count=1))
        if "cookie" not in name:
            self._learn(value)

    def _line(self, line: str) -> str:
        return self.text(_HEADER.sub(rf"\1\2{REDACTED}", line))

    def _mask(self, found: re.Match[str]) -> str:
        literal = found[0]
        if literal not in self._masks:
            number = str(len(self._masks) + 1)
            self._masks[literal] = REDACTED + number.rjust(len(literal) - len(REDACTED), ".")
        if not any(literal in values for values in self._found.values()):
            kind = next((kind for kind, keys in KEYS.items() if re.match(keys, literal)), "")
            self._found.setdefault(kind or "bearer token", set()).add(literal)
        return self._masks[literal]

    def _fragments(self, blocks: Blocks) -> None:
        # A literal may be cut anywhere: it is looked for in what the fragments say together.
        texts: dict[object, list[Leaf]] = {}
        for key, leaf in _keyed(blocks.events):
            texts.setdefault(key, []).append(leaf)
        for pieces in texts.values():
            whole = "".join(piece.text for piece in pieces)
            masked = self.text(whole)
            at = 0
            for piece in pieces:
                end = at + len(piece.text)
                piece.put(masked[at:end])
                at = end

    def _value(self, value: Any, *, spoken: bool) -> Any:
        if isinstance(value, dict):
            return {
                self.text(name): self._field(name, inner, spoken=spoken)
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self._value(inner, spoken=spoken) for inner in value]
        return self.text(value) if type(value) is str else value

    def _field(self, name: str, value: Any, *, spoken: bool) -> Any:
        if not spoken and type(value) is str and value and _names_a_secret(name, value):
            self._header(name, value)
            return value if value.startswith(REDACTED) else REDACTED
        return self._value(value, spoken=spoken or name in _SPOKEN)


def _names_a_secret(name: str, value: str) -> bool:
    name = name.lower()
    return name in SECRET_NAMES and (name != "token" or _KEY_LIKE.fullmatch(value) is not None)


def _keyed(events: Iterable[Mapping[str, Any] | None]) -> Iterator[tuple[object, Leaf]]:
    # Fragments of one text have one key; the next response of a recording begins anew.
    response = 0
    for event in events:
        if event is None or opens_response(event):
            response += 1
        if event is not None:
            for leaf in leaves(event):
                yield (response, leaf.key), leaf
