"""An answer that is equal to everything is the right answer to no exercise."""

import pytest

from workbook import exercise
from workbook.exercises.catalogue import ROWS


class Agreeable:
    """Is equal to, holds, and has everything."""

    def __eq__(self, _):
        return True

    def __ne__(self, _):
        return False

    def __hash__(self):
        return 0

    def __contains__(self, _):
        return True

    def __iter__(self):
        return iter([self])

    def __len__(self):
        return 1

    def __getitem__(self, _):
        return self

    def __getattr__(self, _):
        return self

    def __call__(self, *_, **__):
        return self


def agreeable(base, *content):
    """Return a value of a subclass of `base` that is equal to everything."""
    names = ("__eq__", "__ne__", "__hash__", "__contains__")
    return type(base.__name__, (base,), {name: getattr(Agreeable, name) for name in names})(
        *content
    )


ANSWERS = {
    "object": Agreeable,
    "class": lambda: Agreeable,
    "in a list": lambda: [Agreeable()],
    "in a tuple": lambda: (Agreeable(), Agreeable()),
    "yielded": lambda: iter([Agreeable()]),
    **{
        base.__name__: lambda base=base: agreeable(base)
        for base in (str, bytes, int, float, list, dict, tuple, set, frozenset)
    },
}


@pytest.mark.parametrize("number", ROWS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_what_is_equal_to_everything_passes_no_exercise(number, answer):
    tried = exercise(number)
    parameters = tried.signature.partition("(")[2].rstrip(")")
    function = eval(f"lambda {parameters}: answer()", {"answer": ANSWERS[answer]})
    verdict = tried.check(function)
    assert not verdict.passed
    assert verdict.why
    assert repr(verdict)
