"""Take secrets that are known out of a recording, in every form in which a text can hold them.

A server may send a key back letter by letter: written with escapes, percent-encoded, or in the
fragments of one text. What a reader sees of a text afterwards is the text with REDACTED in place
of the key, whole or in fragments, so that fragments and the text that restates them still agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agentlib.recordings.fragments import Blocks, Contents, Text
from agentlib.recordings.redaction import Events, Form, Redactor
from agentlib.scrubbing import REDACTED

# Other letters than those of ASCII may be equal to one of a key, and are none of it.
_CASELESS = re.IGNORECASE | re.ASCII


class KnownSecrets(Redactor):
    """A redactor that looks for these secrets, and for no shape or name of others."""

    def __init__(self, secrets: Iterable[str]) -> None:
        longest_first = sorted(filter(None, secrets), key=len, reverse=True)
        self._any = re.compile("|".join(map(_pattern, longest_first)) or "(?!)", _CASELESS)
        super().__init__()

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        return self._any.sub(REDACTED, text)

    def lines(self, text: str) -> str:
        """Return lines that are no events without the secrets."""
        return self.text(text)

    def _compile(self) -> re.Pattern[str]:
        return self._any

    def _is_suspect(self, body: bytes, form: Form, events: Events | None) -> bool:
        blocks = Blocks(body, form)
        contents = Contents(events if events is not None else blocks.events)
        texts = (text.whole for text in contents.texts)
        # What is no JSON is kept as it came, and so are the names of fields.
        said = (body.decode(errors="replace"), *contents.structure, *contents.names, *texts)
        return any(self._any.search(text) for text in said)

    def _fragments(self, texts: Iterable[Text]) -> None:
        for text in texts:
            found = [match.span() for match in self._any.finditer(text.whole)]
            at = 0
            for piece in text.pieces:
                end = at + len(piece.text)
                piece.put(_without(piece.text, at, found))
                at = end

    def _object(self, value: dict[str, Any], *, spoken: bool) -> dict[str, Any]:
        changed = super()._object(value, spoken=spoken)
        return {self.text(name): inner for name, inner in changed.items()}

    def _field(self, name: str, value: Any, *, spoken: bool) -> Any:
        del name
        return self._value(value, spoken=spoken)


def _without(piece: str, at: int, found: Iterable[tuple[int, int]]) -> str:
    # The mask stands in the fragment in which the secret begins; the others lose their part of it.
    out, kept = [], 0
    for start, end in found:
        first, last = start - at, end - at
        if last <= 0 or first >= len(piece):
            continue
        out.append(piece[kept : max(first, 0)])
        if first >= 0:
            out.append(REDACTED)
        kept = min(last, len(piece))
    return "".join([*out, piece[kept:]])


def _pattern(secret: str) -> str:
    # Each character as it is, or as an escape: of JSON, in a JSON text inside another one with
    # more than one backslash; of Python; of a URL.
    return "".join(map(_character, secret))


def _character(character: str) -> str:
    ways = [re.escape(character)]
    if ord(character) < 128:
        code = f"{ord(character):02x}"
        ways += [rf"\\{{1,8}}(?:u00|x){code}", f"%{code}"]
    if character == "/":
        ways.append(r"\\{1,8}/")
    return f"(?:{'|'.join(ways)})"
