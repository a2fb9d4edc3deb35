"""Memory stays flat while what arrives does not: measured in a process of its own."""

import pytest

memory = pytest.importorskip("benchmarks.memory", reason="this system does not tell its peak")


@pytest.mark.exhaustive
def test_the_peak_grows_by_less_than_thirty_megabytes_while_a_line_of_a_hundred_arrives():
    grown, came = memory.run("line", "100")
    assert "larger than 16,777,216 bytes" in came
    assert grown < 30_000_000
