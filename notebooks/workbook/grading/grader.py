"""What an exercise is, and how the reader's own code is tried: one trial after the other.

A trial gives the reader's function one input and says what is wrong with what came of it. The
first trial that fails makes the verdict: which stream, which event, what was expected, what was
seen, and why it matters. Whatever the reader's code does, a check returns a verdict: what it made
is only looked at within a limit of time, and whatever that raises is caught.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import inspect
import io
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

from agentlib.jsonvalues import visible
from agentlib.recordings.capture import Capture
from agentlib.wording import short_line
from workbook.grading.verdict import Hint, Hints, Verdict
from workbook.progress_file import keep

# A trial takes a millisecond; a function that takes this long does not end.
TRIAL_SECONDS = 1.0
# More than any answer holds; an iterator that yields more does not end.
MAX_VALUES = 100_000
# Code that catches its end, and goes on, is ended again after this time, and so often.
_AGAIN_SECONDS, _ENDINGS = 0.02, 50
T = TypeVar("T")


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
        name, said = _name_of(self.error), _said(str, self.error)
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
        problem = _bounded(
            lambda: self._unusable(function),
            lambda error: f"your function cannot be looked at: {_failing(error)}",
        )
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
    printed = _Printed()
    try:
        with contextlib.redirect_stdout(printed):
            value = _in_time(lambda: _called(function, arguments, each))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the reader's code raises is shown
        return Outcome(error=error), printed.getvalue()
    return Outcome(value), printed.getvalue()


def _called(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    take: Callable[[Any], object] | None,
) -> Any:
    value = function(*arguments)
    # By its type: an object's own word for its class may be anything.
    if not issubclass(type(value), Iterator):
        return value
    values = []
    # Not `list(value)`: a loop in C cannot be ended.
    for each in value:
        if take is not None:
            take(each)
        values.append(each)
        if len(values) > MAX_VALUES:
            raise DidNotEnd
    return values


class _Printed(io.StringIO):
    """What the reader's function prints; it may close it, and is shown all the same."""

    def close(self) -> None:
        """Stay open."""


def _bounded(look: Callable[[], T], otherwise: Callable[[BaseException], T]) -> T:
    """Return what `look` returns at something of the reader's own, or `otherwise(error)`.

    A repr, a comparison, a signature: any of them may raise whatever it likes, or not end. The
    limit is that of a trial, so that an interrupt which is caught here, too, is no long wait.
    """
    try:
        return _in_time(look)
    except BaseException as error:  # noqa: BLE001 - what the reader made may raise anything
        return otherwise(error)


def _name_of(value: object) -> str:
    # Not `type(value).__name__`: a class may have a property in its place.
    name: str = type.__dict__["__name__"].__get__(type(value))
    return name


def _failing(error: BaseException) -> str:
    said = _said(str, error)
    return f"{_name_of(error)}: {said}" if said else _name_of(error)


def _said(form: Callable[[Any], str], value: object) -> str:
    # Plain text at once: what a repr returns may be a text with methods of its own.
    return _bounded(
        lambda: short_line(str.__str__(form(value))),
        lambda _: f"something of type {_name_of(value)} that cannot be shown",
    )


def _judged(trial: Trial, outcome: Outcome) -> Wrong | None:
    error = None if outcome.error is None else type(outcome.error)
    if error is DidNotEnd:
        return Wrong("A loop in it waits for what never comes.", "an answer")
    if error is not None and issubclass(error, NotImplementedError):
        return Wrong("It is not written yet.", "a value")
    return _bounded(
        lambda: trial.judge(outcome),
        lambda error: Wrong(
            f"What it returned cannot be compared: {_failing(error)}", "a plain value"
        ),
    )


class DidNotEnd(BaseException):  # not an Exception: the reader's own `except` must not catch it
    """Raised inside the reader's function when its time is over."""


class _Call:
    """One call of something of the reader's own, in a thread that is ended with its time.

    By CPython's own door for raising an error in another thread: it costs the reader's code
    nothing, ends a loop of any form, and works on every platform. Where that code catches it, it
    is raised again. A thread that does not end even so is left, as is a call into C.
    """

    def __init__(self, act: Callable[[], Any]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self._act = act
        self._over = False
        self._lock = threading.Lock()
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), daemon=True)

    def wait(self, seconds: float) -> bool:
        """Run it; return whether it was over in time."""
        self._thread.start()
        try:
            self._thread.join(seconds)
            return not self._thread.is_alive()
        finally:
            self._end()

    def _run(self) -> None:
        try:
            try:
                self.value = self._act()
            except BaseException as error:  # noqa: BLE001 - it is handed to who waits
                self.error = error
            self._finish()
        except DidNotEnd:
            self._finish()

    def _finish(self) -> None:
        with self._lock:
            self._over = True
        # One that was sent in the last moment must not arrive any more.
        _raise_in(self._thread.ident, None)

    def _end(self) -> None:
        for _ in range(_ENDINGS):
            with self._lock:
                if self._over:
                    break
                _raise_in(self._thread.ident, DidNotEnd)
            self._thread.join(_AGAIN_SECONDS)


def _in_time(act: Callable[[], T]) -> T:
    """Return what `act` returns, and raise what it raises; DidNotEnd where its time is over."""
    call = _Call(act)
    if not call.wait(TRIAL_SECONDS):
        raise DidNotEnd
    if call.error is not None:
        raise call.error
    value: T = call.value
    return value


def _raise_in(thread: int | None, error: type[BaseException] | None) -> None:
    """Raise an error in a thread as soon as it runs on; None takes back one not yet raised."""
    what = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread or 0), what)


def _line(function: object, error: BaseException | None) -> str:
    """Say at which line of the reader's own function the error came up."""
    if error is None or type(function) is not FunctionType:
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
