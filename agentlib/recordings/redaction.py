"""Take secrets out of a recording, so that what its stream says stays what it says.

What is taken out, and nothing else:

- a literal that is shaped like a key (`sk-...`, `Bearer ...` and the others of KEYS), in any text,
  also where it was streamed in fragments, or with some of its letters as JSON escapes;
- wherever it stands as a word, a value that a request of the recording sent in a header, a query
  or a field whose name tells a secret, if it is of 16 or more letters, digits, `_`, `-`, `+`, `=`
  with a digit and a letter other than `e` among them; the first 64 of them;
- in an event or a catalog, each text in a field whose name ends as NAMES_OF_SECRETS says, in an
  object `headers`, in `{"name": ..., "value": ...}` with such a name, and the query and password
  of a `server_url`; a field `token` only if its value is long. None of this inside `arguments`,
  `input` or a schema: there a password is what the model wrote;
- on a line that is no event, in a note and in an error what follows such a name and a colon.

What tells events, items and calls apart is never changed, whatever it looks like: the names of
fields, the fields of is_structure (kinds, names, IDs, why it stopped) and the lines `event:`. What
a stream says teaches nothing about the rest of it. So these stay: a secret of no known shape that
the server writes into its text, or on the line after its name; a key in an event that is cut off
or broken, unless it stands whole there; and a key in fragments of which nothing says that they are
of one text, as where the IDs of an item rotate and it has no `output_index`.

A literal is replaced by a mask of its own length, the same mask each time. So where it was
streamed in fragments, each fragment holds its part of the mask, and a text that restates them is
still equal to them. (A schema that asks for the shape of a key no longer holds.) Log probabilities
beside a masked text repeat it, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Literal

from agentlib.recordings.fragments import Blocks, Contents, Masked, Text, is_structure
from agentlib.scrubbing import REDACTED

# How the name of a header or a field ends whose value is a secret: apiKey, openai_api_key.
NAMES_OF_SECRETS = (
    r"(?:proxy-)?authorization|(?:set-)?cookie|(?:x-)?(?:goog-)?api[-_]?key|subscription[-_]?key"
    r"|(?:x-)?(?:access|auth|refresh|session|security)[-_]?token"
    r"|(?:client[-_]?)?secret(?:[-_]?access)?(?:[-_]?key)?|private[-_]?key|passw(?:or)?d"
)
# In a JSON text a letter of an escape may stand before a key. A backslash makes `rk-` none.
_BEGINS = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))"
# Prose may hold what only begins like a key; a real one is long.
KEYS = {
    "API key": (
        _BEGINS + r"(?:(?:s|(?<!\\)r)k-[A-Za-z0-9_-]{16,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"
        r"|AIza[A-Za-z0-9_-]{35}|(?:gsk|hf)_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}"
        r"|AKIA[A-Z0-9]{16}(?![A-Za-z0-9]))"
    ),
    "access token": (
        _BEGINS + r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
        r"|xox[abprs]-[A-Za-z0-9-]{12,}|glpat-[A-Za-z0-9_-]{16,}"
        r"|(?<![_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})"
    ),
    "bearer token": (
        r"(?:(?<=[Bb]earer )|(?<=[Bb]earer  )|(?<=BEARER ))"
        r"(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{20,}"
    ),
}
# What the model or a schema says, not the server: only literals count in it.
_SPOKEN = frozenset({"arguments", "input", "parameters", "input_schema", "schema"})
# A field "token" may be a word of the text, with its probability.
_KEY_LIKE = re.compile(r"(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{20,}")
# Neither a kind of event nor a path, nor a number: a mask inside one would break a JSON text.
_KNOWN = re.compile(r"(?=\D*\d)(?=[^A-DF-Za-df-z]*[A-DF-Za-df-z])[A-Za-z0-9_+=-]{16,512}")
# A recording holds a few keys; whoever sends thousands wants to keep a reader busy.
_MOST_KNOWN = 64
_NAME = re.compile(rf"(?i)({NAMES_OF_SECRETS})\s*\Z")
_HEADER = re.compile(rf"(?i)({NAMES_OF_SECRETS})([\"']?[ \t]*[:=][ \t]*)([^\s][^\r\n]*)")
_NO_UTF8 = re.compile("[\udc80-\udcff]")
_KIND_LINE = re.compile(r"((?<![^\r\n])event(?::[^\r\n]*)?(?=[\r\n]|\Z))")
# The user of an address, and its query.
_ADDRESS = re.compile(r"(?<=://)[^/?#]+(?=@)|(?<=\?)[^#]+")
_QUERY_NAMES = frozenset({"key", "token", "sig"})
_MAY_NAME_SECRETS = frozenset({"token", "headers", "server_url", "value"})
_OF_TOKENS = (b"access", b"auth", b"refresh", b"session", b"security")
# A text has no secret where it has none of these: looking for them is far quicker.
_KEY_SIGNS = (
    *("sk-", "rk-", "sk_", "rk_", "AIza", "gsk_", "hf_", "xai-", "AKIA", "earer ", "BEARER "),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox", "glpat-", "eyJ"),
)
_NAME_SIGNS = (
    *(b"authorization", b"cookie", b"secret", b"passw", b'"headers"', b'"server_url"', b"\\u00"),
    *(b"%b%bkey" % each for each in product((b"api", b"iption", b"private"), (b"", b"-", b"_"))),
    *(b"%b%btoken" % each for each in product(_OF_TOKENS, (b"", b"-", b"_"))),
)
_TOKEN = re.compile(rb'"token"\s*:\s*"[A-Za-z0-9._~+/=-]{20}')
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token)[ \t]+")
# A word with letters that are written as escapes, and such an escape.
_ESCAPED_WORD = re.compile(r"(?<!\\)(?:[A-Za-z0-9._~+/=-]|\\u00[2-7][0-9A-Fa-f])+")
_ESCAPE = re.compile(r"\\u(00[2-7][0-9A-Fa-f])")
_OLD_MASK = re.compile(r"\[redacted\]\.*(\d{1,9})")
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}

Form = Literal["sse", "jsonl"]
Events = Iterable[Mapping[str, Any] | None]


class Redactor:
    """Takes the secrets out of the parts of one recording; equal ones get equal masks."""

    def __init__(self) -> None:
        self._masks: dict[str, str] = {}
        self._taken: set[str] = set()
        self._found: dict[str, set[str]] = {}
        self._known: dict[str, str] = {}
        self._keys = self._compile()

    def learn(self, pairs: Iterable[tuple[str, str]], *, counted: bool = True) -> None:
        """Take headers and fields of a request or an answer, which are not kept at all.

        What is secret in them is counted; if it looks like a key, it is masked from here on.
        """
        for name, value in pairs:
            found = _NAME.search(name)
            kind = found[1].lower() if found else "query" if name in _QUERY_NAMES else ""
            if kind and value.strip() not in ("", REDACTED):
                if counted:
                    self._count(kind, value)
                if "cookie" not in kind:
                    self._learn(kind, _SCHEME.sub("", value.strip(), count=1))

    @property
    def note(self) -> str | None:
        """What was redacted, in one sentence: the number of different secrets, by kind."""
        counts = {kind: len(values) for kind, values in sorted(self._found.items()) if values}
        if not counts:
            return None
        kinds = ", ".join(f"{kind} ({n:,})" if n > 1 else kind for kind, n in counts.items())
        total = sum(counts.values())
        return f"{total:,} secret{'s' if total > 1 else ''} redacted: {kinds}"

    def body(self, body: bytes, form: Form, events: Events | None = None) -> bytes:
        """Return `body` without its secrets; `events` are all that are in it, None for `[DONE]`.

        Bytes without a secret are returned as they are, and an event without one keeps its text.
        """
        if body[:2] in _UTF16:
            return self._utf16(body, _UTF16[body[:2]])
        if not self._is_suspect(body, form, events):
            return body
        blocks = Blocks(body, form)
        texts = [*Contents(blocks.events).texts]
        for text in texts:
            self._take_old_masks(text.whole)
        blocks.rewrite_lines(self.lines)
        self._fragments(texts)
        blocks.rewrite_events(lambda event: self._object(event, spoken=False), self.lines)
        return blocks.join()

    def value(self, value: Any) -> Any:
        """Return a copy of a JSON value without its secrets."""
        return self._value(value, spoken=False)

    def text(self, text: str) -> str:
        """Return a text with each literal that is shaped like a key, or is known, masked."""
        if self._holds_key(text):
            text = self._keys.sub(self._mask, text)
        return _ESCAPED_WORD.sub(self._escaped, text) if "\\u00" in text else text

    def lines(self, text: str) -> str:
        """Return lines that are no events without their secrets: comments, a note, an error."""
        rest = _KIND_LINE.split(text)
        rest[::2] = [self.text(_HEADER.sub(self._header, piece)) for piece in rest[::2]]
        return "".join(rest)

    def _compile(self) -> re.Pattern[str]:
        known = "|".join(re.escape(value) for value in sorted(self._known, key=len, reverse=True))
        words = [rf"{_BEGINS}(?<!\\)(?:{known})(?![A-Za-z0-9])(?!\"\s*:)"] if known else []
        return re.compile("|".join([*(f"(?:{keys})" for keys in KEYS.values()), *words]))

    def _is_suspect(self, body: bytes, form: Form, events: Events | None) -> bool:
        contents = Contents(events if events is not None else Blocks(body, form).events)
        rest = body
        # Where all events are known, no name of a field tells a secret and no text holds one, only
        # the lines between the events are left to be searched.
        whole = events is not None and contents.names
        if whole and not any(map(_may_name_secret, contents.names)):
            rest = _between(body, form)
        small = rest.lower()
        if any(sign in small for sign in _NAME_SIGNS) or _TOKEN.search(rest):
            return True
        texts = (text.whole for text in contents.texts)
        said = ("\n".join(contents.structure), rest.decode("latin-1"), *texts)
        return any("\\u00" in text or self._holds_key(text) for text in said)

    def _holds_key(self, text: str) -> bool:
        signs = (*_KEY_SIGNS, *self._known)
        return any(sign in text for sign in signs) and self._keys.search(text) is not None

    def _take_old_masks(self, text: str) -> None:
        # A text that looks like a mask must not become equal to one that gets it.
        for found in _OLD_MASK.finditer(text):
            self._taken.update(found[1][:end] for end in range(1, len(found[1]) + 1))

    def _utf16(self, body: bytes, codec: str) -> bytes:
        text = body.decode(codec, "replace")
        masked = self.lines(text)
        return body if masked == text else masked.encode(codec)

    def _learn(self, kind: str, value: str) -> None:
        new = value not in self._known and len(self._known) < _MOST_KNOWN
        if new and _KNOWN.fullmatch(value):
            self._known[value] = kind
            self._keys = self._compile()

    def _count(self, kind: str, value: str) -> None:
        value = _SCHEME.sub("", value.strip(), count=1)
        self._found.setdefault(kind.lower(), set()).add(value)

    def _header(self, found: re.Match[str]) -> str:
        if _NO_UTF8.sub("", found[3]).rstrip() == REDACTED:
            return found[0]
        self._count(found[1], found[3])
        # A byte that is not UTF-8 stays: the stream cannot be read any further with it.
        bad = _NO_UTF8.search(found[3])
        return found[1] + found[2] + REDACTED + (bad[0] if bad else "")

    def _escaped(self, found: re.Match[str]) -> str:
        word = found[0]
        if "\\" not in word:
            return word
        plain = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), word)
        return self._masked(word, plain) if self._holds_key(plain) else word

    def _mask(self, found: re.Match[str]) -> str:
        return self._masked(found[0], found[0])

    def _masked(self, literal: str, plain: str) -> str:
        if literal not in self._masks:
            number = len(self._masks) + 1
            while str(number) in self._taken:
                number += 1
            self._taken.add(str(number))
            room = len(literal) - len(REDACTED)
            self._masks[literal] = REDACTED + str(number)[-room:].rjust(room, ".")
        if not any(plain in values for values in self._found.values()):
            kinds = (kind for kind, keys in KEYS.items() if re.search(keys, plain))
            kind = next(kinds, self._known.get(plain, "bearer token"))
            self._found.setdefault(kind, set()).add(plain)
        return self._masks[literal]

    def _fragments(self, texts: Iterable[Text]) -> None:
        # A literal may be cut anywhere: it is looked for in what the fragments say together.
        for text in texts:
            masked = self.text(text.whole)
            at = 0
            for piece in text.pieces:
                end = at + len(piece.text)
                piece.put(masked[at:end])
                at = end

    def _value(self, value: Any, *, spoken: bool) -> Any:
        if isinstance(value, dict):
            return self._object(value, spoken=spoken)
        if isinstance(value, list):
            return [self._value(inner, spoken=spoken) for inner in value]
        return self.text(value) if type(value) is str else value

    def _object(self, value: dict[str, Any], *, spoken: bool) -> dict[str, Any]:
        title = value.get("name")
        pair = isinstance(title, str) and _NAME.search(title)
        new = {}
        for name, inner in value.items():
            if name == "value" and pair and not spoken:
                new[name] = self._secret(pair[1], inner)
            else:
                new[name] = self._field(name, inner, spoken=spoken)
        if value.get("logprobs") and any(
            _is_masked(inner, new[name]) for name, inner in value.items() if name != "logprobs"
        ):
            new["logprobs"] = [] if isinstance(value["logprobs"], list) else None
        return new

    def _field(self, name: str, value: Any, *, spoken: bool) -> Any:
        text = isinstance(value, str)
        if spoken or name in _SPOKEN:
            return self._value(value, spoken=True)
        found = _NAME.search(name)
        if found or (name.lower() == "token" and text and _KEY_LIKE.fullmatch(value)):
            return self._secret(found[1] if found else name, value)
        if name == "headers" and isinstance(value, dict):
            return {inner: self._secret(name, each) for inner, each in value.items()}
        if name == "server_url" and text:
            return self.text(_ADDRESS.sub(self._address, value))
        return value if text and is_structure(name) else self._value(value, spoken=False)

    def _secret(self, kind: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._secret(kind, inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._secret(kind, inner) for inner in value]
        if not isinstance(value, str) or value in ("", REDACTED):
            return value
        self._count(kind, value)
        return REDACTED

    def _address(self, found: re.Match[str]) -> str:
        if found[0] != REDACTED:
            self._count("server_url", found[0])
        return REDACTED


def _is_masked(old: Any, new: Any) -> bool:
    return old != new or _holds_mask(new)


def _holds_mask(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_holds_mask, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Masked)


def _between(body: bytes, form: Form) -> bytes:
    # A stream has few lines that differ, other than its data.
    if form == "jsonl":
        return b""
    return b"\n".join({line for line in body.splitlines() if not line.startswith(b"data:")})


def _may_name_secret(name: str) -> bool:
    # `value` because what it stands for, a field `name` beside it says.
    return name.lower() in _MAY_NAME_SECRETS or _NAME.search(name) is not None
