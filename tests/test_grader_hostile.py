"""Whatever a learner's own object does, a check of any exercise answers with a verdict, in time."""

import inspect
import sys
import time

import pytest

from workbook.exercises.catalogue import ROWS, exercise
from workbook.grading import grader


class Interrupted(BaseException):
    """No Exception: what catches those lets it pass."""


def raising(error):
    def raises(*_):
        raise error

    return raises


def hangs(*_):
    while True:
        pass


def ends_late(*_):
    """Catches what ends it, and returns as if nothing had been."""
    try:
        hangs()
    except BaseException:  # noqa: BLE001 - it is meant to
        return "late"


class Text(str):
    """A text whose methods do not end."""

    __slots__ = ()
    split = join = __len__ = hangs


def returns_text(*_):
    return Text("x")


class Meta(type):
    """A class without a name."""

    @property
    def __name__(cls):
        raise Interrupted


class Nameless(metaclass=Meta):
    """An object of it."""

    def __repr__(self):
        raise Interrupted


SPECIAL = ("__repr__", "__str__", "__eq__", "__hash__", "__iter__", "__len__", "__getitem__")
DOES = {
    "exits": raising(SystemExit(3)),
    "interrupts": raising(KeyboardInterrupt()),
    "raises what is no Exception": raising(Interrupted()),
    "raises an error": raising(RuntimeError("no form")),
    "returns a text with methods of its own": returns_text,
    "hangs": hangs,
    "ends late": ends_late,
}


def odd(base, does):
    """Return an object of a built-in type whose every method does that."""
    return type("Odd", (base,), dict.fromkeys(SPECIAL, does) | {"__class__": property(does)})()


VALUES = {
    **{
        f"an object that {word}": (lambda does=does: odd(object, does))
        for word, does in DOES.items()
    },
    **{f"a list that {word}": (lambda does=does: odd(list, does)) for word, does in DOES.items()},
    **{f"a dict that {word}": (lambda does=does: odd(dict, does)) for word, does in DOES.items()},
    "an object without the name of a class": Nameless,
    "a list of such": lambda: [Nameless()],
    "a text of its own": lambda: Text("x"),
    "an endless iterator": lambda: iter(int, 1),
}


@pytest.fixture
def short(monkeypatch):
    """A limit that tests can wait for."""
    monkeypatch.setattr(grader, "TRIAL_SECONDS", 0.03)


def taking_anything(task, function):
    """Return the function, to be called as the exercise calls it."""
    count = task.signature.count(",") + 1

    def answer(*arguments):
        return function(*arguments)

    kind = inspect.Parameter.POSITIONAL_ONLY
    names = [inspect.Parameter(f"a{number}", kind) for number in range(count)]
    answer.__signature__ = inspect.Signature(names)
    return answer


def checked(task, function):
    start = time.perf_counter()
    verdict = task.check(function)
    assert not verdict.passed
    assert verdict.why
    assert type(verdict.text) is str
    assert verdict._repr_html_()
    assert time.perf_counter() - start < 20


@pytest.mark.exhaustive(keep=2)
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("number", ROWS)
def test_every_exercise_answers_whatever_an_object_does(number):
    task = exercise(number)
    for make in VALUES.values():
        checked(task, taking_anything(task, lambda *_, make=make: make()))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("does", [each for each in DOES if each != "interrupts"])
def test_an_error_that_does_so_when_it_is_shown_gets_a_verdict(does):
    odd_error = type("OddError", (ValueError,), {"__str__": DOES[does], "__repr__": DOES[does]})

    def fails(_events):
        raise odd_error

    checked(exercise("03"), fails)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("does", DOES)
def test_a_callable_that_does_so_when_it_is_looked_at_gets_a_verdict(does):
    looked = {"__signature__": property(DOES[does]), "__name__": property(DOES[does])}
    every = {"__call__": lambda *_: None, "__repr__": DOES[does], **looked}
    checked(exercise("03"), type("Odd", (), every)())


def closes(_events):
    sys.stdout.close()


def closes_and_prints(_events):
    sys.stdout.close()
    print("after that")  # noqa: T201


def takes_away(_events):
    sys.stdout = None


@pytest.mark.parametrize("answer", [closes, closes_and_prints, takes_away])
def test_a_standard_output_that_is_closed_is_no_error(answer, capsys):
    before = sys.stdout
    checked(exercise("03"), answer)
    assert sys.stdout is before
    print("still open")  # noqa: T201
    assert capsys.readouterr().out == "still open\n"
