"""The parts of a host, asked with care: what one raises or wrongly returns becomes a PartFailed.

A run has to end in an outcome whatever its host does. What comes from outside of a part, a
cancellation, a timer or an interrupt, passes through.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, get_args

import anyio

from agentlib.assembly import Decision
from agentlib.clock import Expired
from agentlib.conversation import NativeTurn, ToolCall, Usage
from agentlib.errors import EncodingError, OpenFailure
from agentlib.failures import ResponseFailure
from agentlib.jsonvalues import dumps, has_surrogate, quote, visible
from agentlib.runtime.execution import RunsIn
from agentlib.runtime.host import Problem


class Part(NamedTuple):
    """A part: the name that an outcome gives it, what it may return, and what it may raise."""

    name: str
    returns: str = "nothing to wait for"
    accepts: Callable[[Any], bool] = lambda _: True
    raises: tuple[type[Exception], ...] = ()


def is_decision(value: object) -> bool:
    """Say whether a value is a decision that a history, and a saved run, can hold."""
    return isinstance(value, Decision) and _is_whole(value)


def _is_whole(decision: Any) -> bool:
    return (
        _is_usage(decision.usage)
        and isinstance(decision.native, NativeTurn | None)
        and isinstance(decision.calls, tuple)
        and all(map(_is_text, (decision.text, decision.refusal)))
        and all(map(_is_call, decision.calls))
    )


def _is_usage(usage: object) -> bool:
    # A negative counter would give a run more than its budget.
    if not isinstance(usage, Usage):
        return usage is None
    counters = [getattr(usage, each.name) for each in fields(usage)]
    return all(each is None or (isinstance(each, int) and each >= 0) for each in counters)


def _is_call(call: object) -> bool:
    if not isinstance(call, ToolCall):
        return False
    arguments: object = call.arguments
    named = all(_is_text(text) and bool(text) for text in (call.call_id, call.name))
    return named and isinstance(arguments, Mapping) and _is_text(dumps(arguments))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not has_surrogate(value)


def _is_problem(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, Problem) and _is_text(value.reason) and _is_text(value.detail)


NO_DECISION = (OpenFailure, EncodingError, ResponseFailure)
MODEL = Part("model", "a Decision of texts and calls", is_decision, NO_DECISION)
OBSERVE = Part("observe")
APPROVAL = Part("approval", "a reason or None", lambda value: value is None or _is_text(value))
RULES = Part("rules")
CHECKS = Part("checks", "a Problem or None", _is_problem)
VERIFY = Part("verify", "True or False", lambda value: isinstance(value, bool))
COMMIT = Part("commit")
DRAFT = Part("draft")
HARMLESS = Part("harmless", "True or False", lambda value: isinstance(value, bool))
SHOW = Part("show")
CLAIM = Part("journal", "True or False", lambda value: isinstance(value, bool))
RECORD = Part("journal")
OUTPUT = Part("journal", "a text or None", lambda value: isinstance(value, str | None))
RUNS_IN = Part("executor", "task, thread or process", lambda value: value in get_args(RunsIn))


class PartFailed(Exception):
    """Raised where a part of the host raised, or returned what it may not."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part}: {reason}")
        self.part = part
        self.reason = reason


def ask(part: Part, function: Callable[..., Any], *args: Any) -> Any:
    """Return what a part answers. Raises PartFailed."""
    try:
        answer = function(*args)
        accepted = not inspect.isawaitable(answer) and part.accepts(answer)
    except PartFailed:
        raise
    except BaseException as error:
        _refuse(part, error)
        raise
    return _accepted(part, answer, accepted=accepted)


async def wait_for(part: Part, function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    """Return what a part answers in its time. Raises PartFailed, or what the part may raise."""
    try:
        answer = await function(*args)
        accepted = part.accepts(answer)
    except PartFailed:
        raise
    except part.raises:
        raise
    except BaseException as error:
        _refuse(part, error)
        raise
    return _accepted(part, answer, accepted=accepted)


def is_own(error: BaseException) -> bool:
    """Say whether what was raised is a part's own failure, and nothing from outside of it."""
    if isinstance(error, Exception):
        return True
    if isinstance(error, anyio.get_cancelled_exc_class()):
        return _nobody_cancelled()
    return not isinstance(error, Expired | KeyboardInterrupt | GeneratorExit)


def described(error: BaseException) -> str:
    """Return an exception's type and text, whatever its text does."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception as again:  # noqa: BLE001 - an exception whose text raises has none
        text = f"its text raised {type(again).__name__}"
    return visible(f"{name}: {text}" if text else name)


def _refuse(part: Part, error: BaseException) -> None:
    if is_own(error):
        raise PartFailed(part.name, f"it raised {described(error)}") from error


def _accepted(part: Part, answer: Any, *, accepted: bool) -> Any:
    if accepted:
        return answer
    raise PartFailed(part.name, f"expected {part.returns}, it returned {shown(answer)}")


def shown(value: object) -> str:
    """Return a value that a part wrongly returned, for a person, whatever its `repr` does."""
    if inspect.iscoroutine(value):
        value.close()
    try:
        return quote(repr(value))
    except Exception:  # noqa: BLE001 - a `repr` is a part's own code, too
        return f"a {type(value).__name__}"


def _nobody_cancelled() -> bool:
    # asyncio lets anyone raise a CancelledError; trio's can only come of a cancellation.
    if anyio.get_cancelled_exc_class() is not asyncio.CancelledError:
        return False
    task = asyncio.current_task()
    return task is not None and not task.cancelling()
