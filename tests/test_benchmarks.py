"""The benchmark of the assembly measures what it says: the same events, the same outcome."""

import json

import pytest

from agentlib import Limits
from benchmarks.assembly import best, decide, one_by_one, parse, payloads, sdk_accumulator


@pytest.mark.parametrize("size", [3, 16])
def test_both_sides_read_the_same_events_to_the_same_end(size):
    stream = payloads("Some words.", ["one", "two\n"], size)
    parse(stream)
    decision = decide(stream)
    assert decision.text == "Some words."
    assert [call.arguments["text"] for call in decision.calls] == ["one", "two\n"]
    final = sdk_accumulator()(stream)
    assert final.output_text == decision.text
    assert [json.loads(item.arguments) for item in final.output[1:]] == [
        call.arguments for call in decision.calls
    ]


def test_a_long_response_stays_within_the_default_limits():
    stream = one_by_one(100_000)
    assert 99_900 < len(stream) < 100_100
    text, *calls = json.loads(stream[-1])["response"]["output"]
    assert len(text["content"][0]["text"]) <= Limits().text_characters
    assert all(len(call["arguments"]) <= Limits().argument_characters for call in calls)
    assert len(decide(one_by_one(1000)).text) == 520


def test_the_best_round_counts():
    rounds = iter([0, 0, 0])
    assert 0 <= best(3, {"run": lambda: next(rounds)})["run"] < 1
    with pytest.raises(StopIteration):
        next(rounds)
