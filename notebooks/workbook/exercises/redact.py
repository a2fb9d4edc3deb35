"""Keep a secret out of what is recorded, however the bytes are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbook.grading.grader import Exercise, Outcome, Trial, Wrong

SECRET = b"sk-secret"
# One that begins again inside of itself, and one that is a run of one byte.
OVERLAPPING, RUN = b"sk-sk-key", b"aaab"
HIDDEN = b"[redacted]"

WHOLE = "The secret came in two chunks, and stands whole in the file."
KEPT = "Whatever is not the secret is kept, byte for byte."
LATE = (
    "What cannot be the beginning of the secret goes on before the next chunk is asked for. "
    "Whoever waits for the end has recorded nothing of a stream that hangs."
)
FORM = "It takes chunks of bytes and yields chunks of bytes."


class _Feed:
    """The chunks of a stream, one at a time; it sees whether what is safe went on meanwhile."""

    def __init__(self, chunks: Sequence[bytes], secret: bytes) -> None:
        self.secret = secret
        self.text = b"".join(chunks)
        self.seen = b""
        self.late = False
        self._left = iter(chunks)
        self._given = b""

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        self.late = self.late or len(self.seen) < len(self._safe())
        chunk = next(self._left)
        self._given += chunk
        return chunk

    def _safe(self) -> bytes:
        """Return what must have gone on by now: all but a possible beginning of the secret."""
        text = self._given.replace(self.secret, HIDDEN)
        sizes = range(min(len(self.secret) - 1, len(text)), 0, -1)
        held = next((n for n in sizes if self.secret.startswith(text[-n:])), 0)
        return text[: len(text) - held]


def _judge(outcome: Outcome, feed: _Feed) -> Wrong | None:
    wanted = feed.text.replace(feed.secret, HIDDEN)
    try:
        seen = None if outcome.error is not None else b"".join(outcome.value)
    except TypeError:
        seen = None
    if seen is None:
        return Wrong(FORM, repr(wanted))
    if feed.secret in seen:
        return Wrong(WHOLE, repr(wanted))
    if seen != wanted:
        return Wrong(KEPT, repr(wanted))
    return Wrong(LATE, repr(wanted)) if feed.late else None


class _Case:
    def __init__(self, chunks: Sequence[bytes], secret: bytes) -> None:
        self._chunks = chunks
        self._secret = secret

    def prepare(self) -> tuple[object, ...]:
        self._feed = _Feed(self._chunks, self._secret)
        return self._feed, self._secret

    def judge(self, outcome: Outcome) -> Wrong | None:
        return _judge(outcome, self._feed)

    def each(self, chunk: object) -> None:
        if isinstance(chunk, bytes):
            self._feed.seen += chunk


def _trial(
    name: str, place: str, chunks: list[bytes], *, hostile: bool, secret: bytes = SECRET
) -> Trial:
    case = _Case(chunks, secret)
    return Trial(name, place, case.prepare, case.judge, hostile, each=case.each)


def _trials() -> Iterator[Trial]:
    text = b'data: {"key": "sk-secret"}\n\n'
    yield _trial("no secret", "one chunk", [b"data: {}\n\n"], hostile=False)
    yield _trial("nothing", "no chunk", [], hostile=False)
    yield _trial("a secret", "one chunk", [text], hostile=True)
    yield from _cut("a secret", text, SECRET)
    yield _trial("almost a secret", "two chunks", [b"sk-sec", b"tion sk-sek"], hostile=False)
    yield _trial("cut at the end", "two chunks", [b"a sk-se", b"cre"], hostile=False)
    yield _trial("two secrets", "two chunks", [b"sk-secretsk-sec", b"ret"], hostile=True)
    yield from _cut("a secret that begins again", b"is sk-sk-sk-key.", OVERLAPPING)
    yield from _cut("a run before its end", b"aaaaab.", RUN)


def _cut(name: str, text: bytes, secret: bytes) -> Iterator[Trial]:
    for place in range(1, len(text)):
        chunks = [text[:place], text[place:]]
        yield _trial(f"{name}, cut", f"byte {place}", chunks, hostile=True, secret=secret)
    single = [text[place : place + 1] for place in range(len(text))]
    where = f"{len(single)} chunks"
    yield _trial(f"{name}, byte by byte", where, single, hostile=True, secret=secret)


HINTS = (
    "Search in what you hold back plus the new chunk, never in one chunk alone.",
    (
        "After the replacement, hold back the longest end of the text that is a beginning of "
        "the secret, and yield the rest. `secret.startswith(end)` says whether it is one."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=3,
        minutes=15,
        signature="redact(chunks, secret)",
        trials=_trials,
        hint_texts=HINTS,
    )
