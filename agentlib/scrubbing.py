"""Take known secrets, such as the key of a request, out of what a server sends back.

`scrubbed` is for a text that is shown: it may quote a piece of the key, so that pieces count. A
Scrubber is for bytes that are kept as they came, in chunks: only a whole secret is replaced.
Secrets that nobody knows beforehand are found by their shape, in `recordings.redaction`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

REDACTED = "[redacted]"
# A longer piece of a key would narrow down the rest; a shorter one may be what all keys begin with.
MAX_SHOWN_CHARACTERS = 12
# What is shorter is a word for a server that asks for no key, as in "EMPTY", and keeps nothing out.
MIN_KEY_CHARACTERS = 8
# By ASCII alone: other letters may change their number with their case, and shift the places.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def scrubbed(text: str, secret: str) -> str:
    """Return untrusted text without `secret`, or a long piece of it, in upper or lower case.

    What quotes a text may have cut it short, so that only a piece of the key is left in it.
    """
    if len(secret) < MIN_KEY_CHARACTERS:
        return text
    size = min(MAX_SHOWN_CHARACTERS, len(secret))
    lower, known = text.translate(_LOWER), secret.translate(_LOWER)
    pieces = {known[at : at + size] for at in range(len(known) - size + 1)}
    out: list[str] = []
    kept = masked = 0
    for at in range(len(text) - size + 1):
        if lower[at : at + size] not in pieces:
            continue
        if at > masked or not out:
            out += [text[kept:at], REDACTED]
        kept = masked = at + size
    return "".join([*out, text[kept:]])


class Scrubber:
    """Replaces secrets in bytes that come in chunks; any split gives the same bytes.

    At each place it replaces the longest secret that begins there, from left to right. What may
    be the beginning of one is held back until the next bytes decide.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted((s.encode() for s in secrets if s), key=len, reverse=True)
        self._any = re.compile(b"|".join(re.escape(secret) for secret in self._secrets) or b"(?!)")
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes; return those that are decided."""
        text = self._held + chunk
        out: list[bytes] = []
        at = 0
        while True:
            found = self._any.search(text, at)
            stop = found.start() if found is not None else len(text)
            begins = self._unfinished(text, at, stop)
            if begins is not None or found is None:
                cut = stop if begins is None else begins
                self._held = text[cut:]
                return b"".join([*out, text[at:cut]])
            out += [text[at:stop], REDACTED.encode()]
            at = found.end()

    def end(self) -> bytes:
        """Return what was held back: nothing more comes."""
        rest, self._held = self._held, b""
        return self._any.sub(REDACTED.encode(), rest)

    def _unfinished(self, text: bytes, at: int, stop: int) -> int | None:
        # Where, from `at` to `stop`, a secret may begin that reaches beyond the text.
        longest = len(self._secrets[0]) if self._secrets else 0
        for start in range(max(at, len(text) - longest + 1), min(stop + 1, len(text))):
            rest = text[start:]
            if any(len(secret) > len(rest) and secret.startswith(rest) for secret in self._secrets):
                return start
        return None
