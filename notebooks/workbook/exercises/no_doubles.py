"""One more check for the gate, that refuses a call which is asked for twice."""

from __future__ import annotations

from collections.abc import Iterator

from agentlib.conversation import Catalog
from agentlib.evidence import Evidence
from agentlib.failures import ResponseFailure
from agentlib.fixtures import capture
from agentlib.reader import ResponseReader
from agentlib.recordings.capture import Capture
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong
from workbook.pages.compose import composed

FORM = '("pass", "") or ("fail", "why")'


def evidence_of(stream: Capture, catalog: Catalog | None = None) -> Evidence:
    """Return all that is known of the first response of `stream` after its last event."""
    reader = ResponseReader("responses", catalog)
    try:
        for event in stream.events:
            reader.accept(event.data)
    except ResponseFailure:
        pass
    return reader.assembly.evidence()


def _trial(stream: Capture, expected: str, why: str, *, hostile: bool = False) -> Trial:
    def judge(outcome: Outcome) -> Wrong | None:
        if outcome.error is not None:
            return Wrong(f"A check never raises, whatever it is shown. {why}", f'"{expected}"')
        value = tuple(outcome.value) if isinstance(outcome.value, list | tuple) else ()
        status, detail = value[-2:] if len(value) in (2, 3) else (None, None)
        if status not in ("pass", "fail") or not isinstance(detail, str):
            return Wrong("A check returns its finding: a status and a detail.", FORM)
        if status != expected:
            return Wrong(why, f'"{expected}"')
        if status == "fail" and not detail:
            return Wrong("A finding that fails says why: name the call.", '("fail", "why")')
        return None

    return Trial(
        stream=stream.name,
        place=f"event {len(stream.events)}: response.completed",
        prepare=lambda: (evidence_of(stream),),
        judge=judge,
        hostile=hostile,
        capture=stream,
        event=len(stream.events),
    )


def _trials() -> Iterator[Trial]:
    same = '{"path": "a.py", "old": "x", "new": "y"}'
    turned = '{"new": "y",  "old": "x", "path": "a.py"}'
    yield _trial(capture("text_only"), "pass", "There is no call at all.")
    yield _trial(capture("success_2_edit"), "pass", "There is one call only.")
    yield _trial(capture("interleaved"), "pass", "Two calls of one tool, for two files.")
    yield _trial(
        composed("an edit twice", ("edit", same), ("edit", same)),
        "fail",
        "Two calls with two call IDs ask for the same edit; it would be made twice.",
        hostile=True,
    )
    yield _trial(
        composed("two tools", ("list", "{}"), ("test", "{}")),
        "pass",
        "Equal arguments for two different tools are two different calls.",
    )
    yield _trial(
        composed("first and third", ("edit", same), ("list", "{}"), ("edit", same)),
        "fail",
        "The two equal calls do not stand side by side.",
        hostile=True,
    )
    yield from _written_differently(same, turned)


def _written_differently(same: str, turned: str) -> Iterator[Trial]:
    yield _trial(
        composed("another order", ("edit", same), ("edit", turned)),
        "fail",
        "The texts differ and the objects are equal: neither blanks nor the order of names matter.",
        hostile=True,
    )
    yield _trial(
        composed(
            "an order inside",
            ("read", '{"path": {"in": "src", "file": "a.py"}}'),
            ("read", '{"path": {"file": "a.py", "in": "src"}}'),
        ),
        "fail",
        "The order of names does not matter in an inner object either.",
        hostile=True,
    )
    yield _trial(
        composed("two lists", ("read", '{"path": ["a", "b"]}'), ("read", '{"path": ["b", "a"]}')),
        "pass",
        "In an array the order does matter: these two calls differ.",
    )
    yield _trial(
        composed("one and true", ("read", '{"path": 1}'), ("read", '{"path": true}')),
        "pass",
        "In JSON, 1 and true are two values. In Python, 1 == True.",
        hostile=True,
    )
    yield _trial(
        composed("a malformed call", ("edit", same), ("edit", '{"path": "a.py", "ol')),
        "pass",
        "The second call is malformed: another check of the table says so, not this one.",
        hostile=True,
    )
    yield _trial(
        composed("two after a malformed call", ("edit", '{"pa'), ("edit", same), ("edit", same)),
        "fail",
        "Behind the malformed call two ask for the same edit: each check stands for itself.",
        hostile=True,
    )
    yield _trial(
        composed("1 and 1.0", ("read", '{"path": 1}'), ("read", '{"path": 1.0}')),
        "fail",
        "In JSON, 1 and 1.0 are one number, written in two ways: the tool is given the same.",
        hostile=True,
    )


HINTS = (
    (
        "`evidence.calls` and `evidence.arguments` run side by side: for each call its name, "
        "and its arguments as a parsed value. Where they do not parse, the value is an error "
        "object, a StrictJSONError; leave such a call out."
    ),
    (
        "Two objects are the same if they are written the same way: "
        "`json.dumps(value, sort_keys=True)` is such a way. It keeps 1 and true apart, too. "
        "1 and 1.0 are one number: turn each float that `is_integer()` into an int before."
    ),
    "Keep a set of the pairs (name, written arguments) that you have seen.",
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=3,
        minutes=15,
        signature="no_doubles(evidence)",
        trials=_trials,
        hint_texts=HINTS,
    )
