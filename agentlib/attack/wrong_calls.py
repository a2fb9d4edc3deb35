"""Scenarios that complete, and whose calls contradict themselves, their schema or one another."""

from __future__ import annotations

from agentlib.attack.scenario import ALL_OR_NOTHING, LABORATORY, Scenario

CONTRADICTIONS: tuple[Scenario, ...] = (
    Scenario(
        "end-restates-other-arguments",
        "the end restates other arguments",
        "Two versions of the call were there, and one of them ran.",
        "calls_equal",
        ALL_OR_NOTHING,
        restates=("other value",),
        apis=("responses",),
        kind="corrected-by-done",
    ),
    Scenario(
        "end-restates-nothing",
        "the end restates no call",
        "The complete response holds no call. Some servers never restate, and leniency is meant.",
        "none_omitted",
        ALL_OR_NOTHING,
        mutations=("nothing at the end",),
        apis=("responses",),
        kind="nothing-restated",
    ),
    Scenario(
        "name-twice",
        "an argument's name comes twice",
        "Two readers of the same arguments would do two different things.",
        "strict_json",
        ALL_OR_NOTHING,
        calls=("name twice",),
        kind="duplicate-keys",
    ),
    Scenario(
        "unknown-argument",
        "an argument comes that the schema does not allow",
        "The schema knows no such argument: it was handed on all the same, or left out.",
        "schema",
        ALL_OR_NOTHING,
        calls=("unknown argument",),
        kind="arguments-off-schema",
    ),
    Scenario(
        "wrong-type",
        "an argument is of another type",
        "The tool was given a value that its schema refuses, or a guess at what was meant.",
        "schema",
        ALL_OR_NOTHING,
        calls=("wrong type",),
        kind="arguments-off-schema",
    ),
)

BATCHES: tuple[Scenario, ...] = (
    Scenario(
        "second-call-cut",
        "the second of two calls is cut",
        "One call of a broken response ran beside one that could not.",
        "strict_json",
        ALL_OR_NOTHING,
        calls=("whole", "cut"),
        kind="cut-arguments",
    ),
    Scenario(
        "second-call-cut-in-last-value",
        "the second of two calls is cut in its last value",
        "One call of a broken response ran, or half a value was acted on.",
        "strict_json",
        ALL_OR_NOTHING,
        calls=("whole", "cut in the last value"),
        kind="cut-arguments",
    ),
    Scenario(
        "unknown-tool-beside",
        "a tool that was never offered stands beside a good call",
        "One call of a response that asks for the impossible ran.",
        "exposed",
        ALL_OR_NOTHING,
        calls=("whole", "unknown tool"),
        kind="unknown-tool",
    ),
    Scenario(
        "call-id-twice",
        "two calls have one ID",
        "A result can no longer be told apart, and one request may have run twice.",
        "call_ids",
        ALL_OR_NOTHING,
        calls=("whole", "same ID"),
        kind="duplicate-call-id",
    ),
    Scenario(
        "call-after-end",
        "a second call comes after the end",
        "What came after the end was acted on as well.",
        "",
        LABORATORY,
        calls=("whole", "whole"),
        mutations=("second call after the end",),
        may_run=1,
        kind="sent-after-the-end",
    ),
)
