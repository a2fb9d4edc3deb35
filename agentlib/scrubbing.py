"""Take known secrets, such as the key of a request, out of what a server sends back.

`scrubbed` is for a text that is shown: it may quote a piece of the key, so that pieces count. A
Scrubber is for bytes that are kept as they came, in chunks: only a whole secret is replaced.
Secrets that nobody knows beforehand are found by their shape, in `recordings.redaction`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from typing import TypeVar

REDACTED = "[redacted]"
# A longer piece of a key would narrow down the rest; a shorter one may be what all keys begin with.
MAX_SHOWN_CHARACTERS = 12
# What is shorter is a word for a server that asks for no key, as in "EMPTY", and keeps nothing out.
MIN_KEY_CHARACTERS = 8
# What an error carries beyond this is no text to be read, but a document: it is not chained.
MAX_LOOKED_AT_CHARACTERS = 64 * 1024
# By ASCII alone: other letters may change their number with their case, and shift the places.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
# A character as an escape: of JSON (in a JSON text inside another one the backslash is doubled),
# of Python's repr, or of a URL. Any other stands for itself.
_ESCAPE = re.compile(r"\\{1,8}(?:u00[0-9A-Fa-f]{2}|x[0-9A-Fa-f]{2}|/)|%[0-9A-Fa-f]{2}")
_UNIT = re.compile(r"\\{1,8}(?:u00|x)([0-9A-Fa-f]{2})|%([0-9A-Fa-f]{2})|\\{1,8}/|.", re.DOTALL)
# The texts that the errors of this package carry, besides their arguments.
_TEXTS = ("reason", "code", "param", "excerpt")
E = TypeVar("E", bound=BaseException)


def scrubbed(text: str, secret: str) -> str:
    """Return untrusted text without `secret`, or a long piece of it, in upper or lower case.

    It is found as it is, with characters as escapes (of JSON, also nested, and of Python), and
    percent-encoded, as in a URL. What quotes a text may have cut it short, so that only a piece
    of the key is left in it.
    """
    if len(secret) < MIN_KEY_CHARACTERS:
        return text
    known, _ = _unescaped(secret)
    plain, places = _unescaped(text)
    size = min(MAX_SHOWN_CHARACTERS, len(known))
    pieces = {known[at : at + size] for at in range(len(known) - size + 1)}
    out: list[str] = []
    kept = masked = 0
    for at in range(len(plain) - size + 1):
        if plain[at : at + size] not in pieces:
            continue
        if at > masked or not out:
            out += [text[places[kept] : places[at]], REDACTED]
        kept = masked = at + size
    return "".join([*out, text[places[kept] :]])


def _unescaped(text: str) -> tuple[str, Sequence[int]]:
    # What a text stands for, in lower case, and where each character of that begins in it.
    if _ESCAPE.search(text) is None:
        return text.translate(_LOWER), range(len(text) + 1)
    found = list(_UNIT.finditer(text))
    plain = "".join([chr(int(f[1] or f[2], 16)) if f[1] or f[2] else f[0][-1] for f in found])
    return plain.translate(_LOWER), [*(each.start() for each in found), len(text)]


def unless_quoting(error: E, secret: str) -> E | None:
    """Return `error`, to be chained, or None where a traceback of it would show `secret`."""
    texts = "\n".join(text for each in chain(error) for text in _texts(each))
    if len(texts) > MAX_LOOKED_AT_CHARACTERS:
        return None
    return error if scrubbed(texts, secret) == texts else None


def without_secret(error: E, secret: str) -> E:
    """Return `error`, one of this package's, with nothing of `secret` in its texts.

    A server may send the key back anywhere. A cause that quotes it is left out.
    """
    error.args = tuple(scrubbed(a, secret) if isinstance(a, str) else a for a in error.args)
    for name in _TEXTS:
        text = getattr(error, name, None)
        if isinstance(text, str):
            setattr(error, name, scrubbed(text, secret))
    if any(unless_quoting(each, secret) is None for each in chain(error)[1:]):
        error.__cause__ = error.__context__ = None
    return error


def _texts(error: BaseException) -> Iterable[str]:
    # What it carries, such as the body of an answer, is shown by tools that print more than that.
    notes = getattr(error, "__notes__", ())
    carried = (each for each in vars(error).values() if isinstance(each, str | bytes | dict | list))
    yield from (f"{error}", f"{error!r}", *map(str, notes), *map(str, carried))


def chain(error: BaseException) -> list[BaseException]:
    """Return the error, then all its causes and contexts, the nearest first."""
    found: list[BaseException] = [error]
    for each in found:
        before = (each.__cause__, each.__context__)
        found += [earlier for earlier in before if earlier is not None and earlier not in found]
    return found


class Scrubber:
    """Replaces secrets in bytes that come in chunks; any split gives the same bytes.

    At each place it replaces the longest secret that begins there, from left to right. What may
    be the beginning of one is held back until the next bytes decide.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        # One secret is a sequence of texts too: of its letters.
        secrets = (secrets,) if isinstance(secrets, str) else secrets
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
