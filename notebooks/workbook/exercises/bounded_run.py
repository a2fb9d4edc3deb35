"""The small loop with a bound on its turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from agentlib.assembly import Decision
from agentlib.conversation import Catalog, Entry, check_history, user
from agentlib.errors import EncodingError
from agentlib.failures import ResponseFailure
from agentlib.fixtures import capture
from agentlib.recordings.capture import Capture
from agentlib.wording import plural
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong, listed
from workbook.pages.compose import composed
from workbook.pages.project import Project
from workbook.pages.small_loop import Model, RecordedModel, ScriptedModel, run, said, wants

REQUEST = user("Please repair add().")


class _AskedTooOften(Exception):
    """Raised to the reader's loop when it asks past its bound, so that it comes to an end."""


class _Watched:
    """A model that notes how it is asked, and the first thing that is wrong with that."""

    def __init__(self, model: Model, max_turns: int) -> None:
        self.model = model
        self.max_turns = max_turns
        self.asked = 0
        self.failed = 0
        self.answered = 0
        self.wrong: Wrong | None = None

    def complete(self, history: Sequence[Entry], tools: object) -> Decision:
        self.asked += 1
        if self.answered:
            self._note(
                f"The model gave its answer in turn {self.answered}, without a call, and is asked "
                "again. An answer is the end of a run.",
                f"no turn after turn {self.answered}",
            )
        if self.failed:
            self._note(
                f"Turn {self.failed} failed after its stream was open, and the model is asked "
                "again. What it had begun is unknown, and a second answer may do it twice.",
                f"no turn after turn {self.failed}, and its failure passed on",
            )
        if self.asked > self.max_turns:
            self._note(
                f"The model is asked a turn too many, turn {self.asked}. Each turn costs money, "
                "and a model that never stops asking never ends by itself.",
                f"at most {plural(self.max_turns, 'turn')}",
            )
            raise _AskedTooOften(f"turn {self.asked}, and max_turns is {self.max_turns}")
        if not isinstance(tools, Catalog):
            self._note("complete() takes the history and the catalog.", "tools.catalog")
            tools = Project().catalog
        try:
            check_history(list(history))
        except EncodingError as error:
            self._note(
                f"The request of turn {self.asked} would be refused with status 400: {error}.",
                "the message of each decision, then one result for each of its calls, in order",
            )
        try:
            decision = self.model.complete(history, tools)
        except ResponseFailure:
            self.failed = self.asked
            raise
        if not decision.calls:
            self.answered = self.asked
        return decision

    def _note(self, why: str, expected: str) -> None:
        self.wrong = self.wrong or Wrong(why, expected)


class _Endless:
    """A model that asks for the same call in every turn, each time with a new call ID."""

    def __init__(self) -> None:
        self._turn = 0

    def complete(self, history: Sequence[Entry], tools: Catalog) -> Decision:
        del history, tools
        self._turn += 1
        return said("", wants(f"call_{self._turn}", "list"))


class _Case:
    """One run: a model made anew, a bound, and whether the run comes to an answer within it."""

    def __init__(self, model: Callable[[], Model], max_turns: int, *, answers: bool) -> None:
        self.model = model
        self.max_turns = max_turns
        self.answers = answers

    def prepare(self) -> tuple[object, ...]:
        self.watched = _Watched(self.model(), self.max_turns)
        self.project = Project()
        self.history: list[Entry] = [REQUEST]
        return self.watched, self.history, self.project, self.max_turns

    def judge(self, outcome: Outcome) -> Wrong | None:
        if self.watched.wrong is not None:
            return self.watched.wrong
        if self.history != [REQUEST]:
            return Wrong(
                "The caller's own list is changed. A caller that asks again, after a failure or "
                "for another run, then sends what this run left in it.",
                "a history of its own, which begins with the caller's",
            )
        if not self.answers:
            return self._judge_refusal(outcome)
        expected = run(self.model(), [REQUEST], Project())
        if outcome.error is not None:
            return Wrong(
                "This run answers within its bound; nothing is wrong with it.",
                f"the history of {len(expected)} entries",
            )
        if not isinstance(outcome.value, list | tuple):
            return Wrong("A run returns its whole history.", "a list of entries")
        if list(outcome.value) != expected:
            return self._judge_history(list(outcome.value), expected)
        return None

    def _judge_history(self, seen: list[object], expected: list[Entry]) -> Wrong:
        pairs = enumerate(zip(seen, expected, strict=False), 1)
        shorter = min(len(seen), len(expected)) + 1
        place = next((number for number, (left, right) in pairs if left != right), shorter)
        wanted = expected[place - 1] if place <= len(expected) else "nothing more"
        return Wrong(
            f"The history differs from entry {place} on. It ran {listed(self.project.ran)}.",
            f"entry {place}: {wanted}",
        )

    def _judge_refusal(self, outcome: Outcome) -> Wrong | None:
        if outcome.error is None:
            return Wrong(
                "It returns as if the run were over, and it is not: the caller cannot tell a "
                "task that is done from one that stopped.",
                "an error",
            )
        return None


def _trial(
    stream: str,
    case: _Case,
    *,
    hostile: bool = False,
    shown: Capture | None = None,
) -> Trial:
    return Trial(
        stream=stream,
        place=f"max_turns={case.max_turns}",
        prepare=case.prepare,
        judge=case.judge,
        hostile=hostile,
        capture=shown,
        event=len(shown.events) + 1 if shown is not None else None,
    )


def _trials() -> Iterator[Trial]:
    # Without the turn that runs the tests: a process of its own takes its time.
    whole = tuple(map(capture, ("success_1_read", "success_2_edit", "success_4_answer")))
    two = (capture("interleaved"), capture("text_only"))
    cut = capture("disconnect")
    stale = (
        composed("stale", ("edit", '{"path": "calculator.py", "old": "a // b", "new": "a"}')),
        capture("text_only"),
    )
    yield _trial("text_only", _recorded(two[1:], 1))
    yield _trial("interleaved", _recorded(two, 2))
    yield _trial("stale edit", _recorded(stale, 5))
    yield _trial("endless", _Case(_Endless, 3, answers=False), hostile=True)
    yield _trial("endless", _Case(_Endless, 1, answers=False), hostile=True)
    yield _trial("interleaved", _recorded(two, 1, answers=False))
    for turns in (1, 2, 3):
        yield _trial("success", _scripted(turns, answers=False))
    yield _trial("success", _scripted(4))
    yield _trial("success", _recorded(whole, 10))
    lost = _recorded((whole[0], cut, whole[1]), 10, answers=False)
    yield _trial("disconnect", lost, hostile=True, shown=cut)


def _recorded(captures: Sequence[Capture], max_turns: int, *, answers: bool = True) -> _Case:
    return _Case(lambda: RecordedModel(*captures), max_turns, answers=answers)


def _scripted(max_turns: int, *, answers: bool = True) -> _Case:
    script = (
        said("", wants("call_1", "read", path="calculator.py")),
        said("", wants("call_2", "list"), wants("call_3", "read", path="calculator.py")),
        said("", wants("call_4", "list")),
        said("Done."),
    )
    return _Case(lambda: ScriptedModel(*script), max_turns, answers=answers)


HINTS = (
    "The first fault: a decision without calls is the answer. Compare the stub with run().",
    (
        "The second: what follows the loop is reached only when no turn gave an answer. "
        "Returning there looks like success."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="bounded_run(model, history, tools, max_turns)",
        trials=_trials,
        hint_texts=HINTS,
    )
