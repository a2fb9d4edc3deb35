"""Keep a secret out of what is recorded, however the bytes are cut."""

from __future__ import annotations

from collections.abc import Iterator

from workbook.grading.grader import Exercise, Outcome, Trial, Wrong

SECRET = b"sk-secret"
HIDDEN = b"[redacted]"


def _judge(outcome: Outcome, chunks: list[bytes]) -> Wrong | None:
    wanted = b"".join(chunks).replace(SECRET, HIDDEN)
    try:
        seen = None if outcome.error is not None else b"".join(outcome.value)
    except TypeError:
        seen = None
    if seen is None:
        return Wrong("It takes chunks of bytes and returns chunks of bytes.", repr(wanted))
    if SECRET in seen:
        return Wrong("The secret came in two chunks, and stands whole in the file.", repr(wanted))
    if seen != wanted:
        return Wrong("Whatever is not the secret is kept, byte for byte.", repr(wanted))
    return None


def _trial(name: str, place: str, chunks: list[bytes], *, hostile: bool) -> Trial:
    return Trial(
        stream=name,
        place=place,
        prepare=lambda: (list(chunks), SECRET),
        judge=lambda outcome: _judge(outcome, chunks),
        hostile=hostile,
    )


def _trials() -> Iterator[Trial]:
    text = b'data: {"key": "sk-secret"}\n\n'
    yield _trial("no secret", "one chunk", [b"data: {}\n\n"], hostile=False)
    yield _trial("nothing", "no chunk", [], hostile=False)
    yield _trial("a secret", "one chunk", [text], hostile=True)
    for place in range(1, len(text)):
        chunks = [text[:place], text[place:]]
        yield _trial("a secret, cut", f"byte {place}", chunks, hostile=True)
    single = [text[place : place + 1] for place in range(len(text))]
    yield _trial("a secret, byte by byte", f"{len(single)} chunks", single, hostile=True)
    yield _trial("almost a secret", "two chunks", [b"sk-sec", b"tion sk-sek"], hostile=False)
    yield _trial("cut at the end", "two chunks", [b"a sk-se", b"cre"], hostile=False)
    yield _trial("two secrets", "two chunks", [b"sk-secretsk-sec", b"ret"], hostile=True)


HINTS = (
    "Search in what you hold back plus the new chunk, never in one chunk alone.",
    (
        "After the replacement, hold back the longest end of the text that is a beginning of "
        "the secret. `secret.startswith(end)` says whether it is one."
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
