"""Our gate against a second one, written by someone who had not read it."""

import pytest
from second_gate_fuzz import fuzz, unexplained


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(4))
def test_a_difference_between_the_two_gates_is_explained(seed):
    counts, kept = fuzz(500, seed=f"suite {seed}")
    assert counts.total() == 500
    assert {name: kept[name] for name in unexplained(counts)} == {}
