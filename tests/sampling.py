"""How many examples a property is tried on: fewer in `make quick`."""

from hypothesis import settings

WHOLE = 100


def examples(number):
    """`number` of them in a whole run; in a quick one, less by as much as everywhere."""
    return max(1, number * settings().max_examples // WHOLE)
