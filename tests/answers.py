"""What must come of a reader's answer, right or wrong: asked in one way for every exercise."""

from workbook.exercises.catalogue import exercise


def assert_right(number, answer):
    """The answer passes, however it is written."""
    verdict = exercise(number).check(answer)
    assert verdict.passed, verdict.text


def assert_caught(number, answer, where, why=""):
    """The answer fails at the place that begins with `where`, for a reason that has `why`."""
    verdict = exercise(number).check(answer)
    assert not verdict.passed
    assert verdict.where.startswith(where), verdict.text
    assert verdict.why
    assert why in verdict.why, verdict.text
