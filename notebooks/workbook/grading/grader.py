"""What an exercise is, and how the reader's own code is tried: one trial after the other.

A trial gives the reader's function one input and says what is wrong with what came of it. The
first trial that fails makes the verdict: which stream, which event, what was expected, what was
seen, and why it matters. Whatever the reader's code does, a check returns a verdict.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import io
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple

from agentlib.jsonvalues import visible
from agentlib.recordings.capture import Capture
from agentlib.wording import short_line
from workbook.grading.verdict import Hint, Hints, Verdict
from workbook.progress_file import keep

# A trial takes a millisecond; a function that takes this long does not end.
TRIAL_SECONDS = 1.0


class Outcome(NamedTuple):
    """What the reader's function did: the value it returned, or the error it raised."""

    value: Any = None
    error: BaseException | None = None

    @property
    def shown(self) -> str:
        """What it did, in a few words."""
        if self.error is None:
            return f"returned {_said(repr, self.value)}"
        if isinstance(self.error, DidNotEnd):
            return f"was still running after {TRIAL_SECONDS:.0f} second"
        name, said = type(self.error).__name__, _said(str, self.error)
        return f"raised {name}: {said}" if said else f"raised {name}"


class Wrong(NamedTuple):
    """Why an outcome is wrong: one or two sentences that teach, and what was expected instead.

    `seen` says what it did in the same words as `expected`, where `Outcome.shown` does not.
    """

    why: str
    expected: str
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """One input for the reader's function, and the judge of what comes of it.

    `stream` and `place` name it, for example "disconnect" and "event 7". `prepare` makes the
    arguments anew for each run, so that a function that changes them harms nobody. `judge`
    returns None where the outcome is right. `hostile` says whether the stream is one that must
    not be believed. `capture` and `event` are what a reader can look at. `each`, where given, is
    handed every value of a generator as it comes, before the next is asked for.
    """

    stream: str
    place: str
    prepare: Callable[[], tuple[Any, ...]]
    judge: Callable[[Outcome], Wrong | None]
    hostile: bool = False
    capture: Capture | None = None
    event: int | None = None
    each: Callable[[Any], object] | None = None


@dataclass(frozen=True, repr=False)
class Exercise:
    """One exercise: what it is called, how hard it is, how the reader's function is tried.

    `size` is 1 to 4, `minutes` what it takes. `signature` is how the function is called. `trials`
    makes the trials, the plain ones first. `tried_on` is what a verdict calls that which a trial
    is on: a stream, or a case where there is none.
    """

    number: str
    title: str
    size: int
    minutes: int
    signature: str
    trials: Callable[[], Iterable[Trial]] = field(repr=False)
    hint_texts: tuple[str, ...] = field(repr=False)
    tried_on: str = field(default="stream", repr=False)

    def check(self, function: object) -> Verdict:
        """Try the reader's function on every stream, and return the verdict. Never raises.

        What came of it is kept where the reader's progress is.
        """
        verdict = self._tried(function)
        keep("passed" if verdict.passed else "tried", self.number)
        return verdict

    def _tried(self, function: object) -> Verdict:
        problem = self._unusable(function)
        if problem is not None or not callable(function):
            return self._verdict(why=problem or "")
        tried = list(self.trials())
        for number, trial in enumerate(tried):
            outcome, printed = attempt(function, trial.prepare, trial.each)
            wrong = _judged(trial, outcome)
            if wrong is not None:
                line = _line(function, outcome.error)
                return self._verdict(
                    why=wrong.why,
                    where=f"{trial.stream}, {trial.place}",
                    expected=wrong.expected,
                    seen=f"{wrong.seen or outcome.shown}{line}",
                    printed=short_line(printed.strip()),
                    held=number,
                    capture=trial.capture,
                    event=trial.event,
                )
        return self._verdict(
            passed=True,
            held=len(tried),
            streams=len({trial.stream for trial in tried}),
            hostile=len({trial.stream for trial in tried if trial.hostile}),
        )

    def hint(self, number: int = 1) -> Hint:
        """Return hint `number`, from 1; a number outside is the nearest one inside."""
        number = max(1, min(number, len(self.hint_texts)))
        return Hint(number, self.hint_texts[number - 1])

    @property
    def hints(self) -> Hints:
        """All hints, each folded until it is opened."""
        return Hints(tuple(self.hint(n) for n in range(1, len(self.hint_texts) + 1)))

    def __repr__(self) -> str:
        return (
            f"exercise {self.number} · {self.title} · size {self.size} of 4 · "
            f"about {self.minutes} minutes · you write {self.signature}"
        )

    def _unusable(self, function: object) -> str | None:
        if not callable(function):
            return f"expected your function, saw {_said(repr, function)}: pass it by its name"
        if inspect.iscoroutinefunction(function):
            return "your function is async; write it with a plain def, nothing here waits"
        names = self.signature.partition("(")[2].rstrip(")").split(",")
        wanted = [name for name in names if name.strip()]
        with contextlib.suppress(TypeError, ValueError):
            signature = inspect.signature(function)
            try:
                signature.bind(*wanted)
            except TypeError:
                name = getattr(function, "__name__", "function")
                return f"it is called as {self.signature}, and yours is {name}{signature}"
        return None

    def _verdict(self, **what: Any) -> Verdict:
        title = f"exercise {self.number} · {self.title}"
        return Verdict(title=title, tried_on=self.tried_on, **what)


def attempt(
    function: Callable[..., Any],
    prepare: Callable[[], tuple[Any, ...]],
    each: Callable[[Any], object] | None = None,
) -> tuple[Outcome, str]:
    """Call the reader's function once, and return what came of it and what it printed.

    A generator is read to its end here, where its errors belong. Only an interrupt by the reader
    gets out.
    """
    arguments = prepare()
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), _TimeLimit(TRIAL_SECONDS):
            value = function(*arguments)
            if isinstance(value, Iterator):
                value = list(value if each is None else _handed(value, each))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the reader's code raises is shown
        return Outcome(error=error), printed.getvalue()
    return Outcome(value), printed.getvalue()


def _handed(values: Iterator[Any], each: Callable[[Any], object]) -> Iterator[Any]:
    for value in values:
        each(value)
        yield value


def _said(form: Callable[[Any], str], value: object) -> str:
    try:
        return short_line(form(value))
    except Exception:  # noqa: BLE001 - what the reader made may not even have a form
        return f"something of type {type(value).__name__} that cannot be shown"


def _judged(trial: Trial, outcome: Outcome) -> Wrong | None:
    if isinstance(outcome.error, DidNotEnd):
        return Wrong("A loop in it waits for what never comes.", "an answer")
    if isinstance(outcome.error, NotImplementedError):
        return Wrong("It is not written yet.", "a value")
    try:
        return trial.judge(outcome)
    except Exception as error:  # noqa: BLE001 - what the reader returned may break in any way
        why = f"What it returned cannot be compared: {type(error).__name__}: {_said(str, error)}"
        return Wrong(why, "a plain value")


class DidNotEnd(BaseException):  # not an Exception: the reader's own `except` must not catch it
    """Raised inside the reader's function when its time is over."""


class _TimeLimit:
    """Raises DidNotEnd in this thread when its block takes longer than `seconds`.

    By CPython's own door for raising an error in another thread: it costs the reader's code
    nothing, ends a loop of any form, and works on every platform. A single call into C that
    never returns is not ended by it.
    """

    def __init__(self, seconds: float) -> None:
        self._thread = threading.get_ident()
        self._timer = threading.Timer(seconds, self._fire)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._over = self._fired = False

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._lock:
            self._over = True
        self._timer.cancel()
        # Sent in the last moment, it is still on its way: it must not arrive anywhere but here.
        while self._fired and kind is not DidNotEnd:
            time.sleep(0)

    def _fire(self) -> None:
        with self._lock:
            if not self._over:
                self._fired = True
                raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
                raise_in(ctypes.c_ulong(self._thread), ctypes.py_object(DidNotEnd))


def _line(function: object, error: BaseException | None) -> str:
    """Say at which line of the reader's own function the error came up."""
    if error is None or not isinstance(function, FunctionType):
        return ""
    code = function.__code__
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == code.co_filename and frame.lineno is not None
    ]
    return f" (line {lines[-1] - code.co_firstlineno + 1} of your function)" if lines else ""


def listed(values: Iterable[object]) -> str:
    """Return values as a list is written, fit to be shown."""
    return visible(repr(list(values)))
