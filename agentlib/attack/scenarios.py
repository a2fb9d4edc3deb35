"""The scenarios of an attack, as data: what the model asks, what is wrong, and how it ends.

Each has a stable name. Its `kind` is the diagnosis of such a stream
(`agentlib.inspection.diagnoses`), and `check` the gate's check that refuses it, both as
`agentlib inspect` prints them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentlib.attack.apis import APIS, Api
from agentlib.conformance.script import Stop

Ends: TypeAlias = Literal["clean", "reset", "held"]

_PROGRESS = "03_progress_is_not_completion"
_ALL_OR_NOTHING = "04_release_all_or_nothing"
_OPENING_ONLY = "05_retry_the_opening_only"
_LABORATORY = "06_failure_laboratory"
_VOCABULARY = "07_one_vocabulary_many_providers"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One stream that an agent is given.

    `meaning` says in one sentence what it means to run the tool here, and `chapter` explains it.
    `calls` names the form of each call's arguments (`agentlib.attack.arguments.FORMS`),
    `restates` the forms that the end restates instead, `stop` how the script ends, `mutations`
    what is done to its events (`agentlib.attack.mutations.MUTATIONS`), and `ends` how the
    connection does; `done` is whether Chat's `[DONE]` comes. `optional` asks for a tool that
    requires no argument. `may_run` is how often the tool may run.
    """

    name: str
    title: str
    meaning: str
    check: str
    chapter: str = _PROGRESS
    calls: tuple[str, ...] = ("whole",)
    stop: Stop = "complete"
    mutations: tuple[str, ...] = ()
    restates: tuple[str, ...] = ()
    ends: Ends = "clean"
    done: bool = True
    apis: tuple[Api, ...] = APIS
    optional: bool = False
    may_run: int = 0
    kind: str = ""

    @property
    def is_control(self) -> bool:
        """Whether it is a good stream, without which nothing follows for the others."""
        return self.name in (GOOD_CALL, GOOD_TEXT)


GOOD_CALL = "good-call"
GOOD_TEXT = "good-text"
HELD_OPEN = "held-open"
USAGE_TWICE = "usage-on-every-event"

CONTROLS: tuple[Scenario, ...] = (
    Scenario(
        GOOD_CALL,
        "a good call, whole and completed",
        "The tool has to run once: without that, nothing follows for the other streams.",
        "",
        may_run=1,
    ),
    Scenario(
        GOOD_TEXT,
        "a good text, without a call",
        "The agent has to end well: without that, nothing follows for the other streams.",
        "",
        calls=(),
    ),
)

_CUTS: tuple[Scenario, ...] = (
    Scenario(
        "cut-after-item-done",
        "the stream ends after the call is whole",
        "The arguments were all there, and the response never completed.",
        "completed",
        mutations=("cut after the call",),
        done=False,
        kind="cut-stream",
    ),
    Scenario(
        "cut-after-arguments",
        "the stream ends after the last fragment",
        "Nothing said that the call was done, nor that the response was complete.",
        "completed",
        mutations=("cut after the arguments",),
        apis=("responses", "messages"),
        kind="cut-stream",
    ),
    Scenario(
        "done-without-finish",
        "[DONE] comes, and no finish reason",
        "A transport's last line was taken for the model's own word that it had finished.",
        "completed",
        mutations=("cut after the call",),
        apis=("chat",),
        kind="missing-finish-reason",
    ),
    Scenario(
        "cut-before-stop",
        "a stop reason comes, and no message_stop",
        "The reason came, and the message never ended.",
        "completed",
        mutations=("cut before the end",),
        apis=("messages",),
        kind="cut-stream",
    ),
    Scenario(
        "reset-after-item-done",
        "the connection is reset after the call is whole",
        "A torn connection was taken for an end.",
        "completed",
        mutations=("cut after the call",),
        ends="reset",
        done=False,
        kind="cut-stream",
    ),
    Scenario(
        "cut-in-arguments",
        "the stream ends inside the arguments",
        "Arguments that no one finished were acted on.",
        "completed",
        calls=("cut",),
        mutations=("cut after the arguments",),
        done=False,
        kind="cut-stream",
    ),
    Scenario(
        "cut-in-last-value",
        "the stream ends inside the last value",
        "Every name was there and the last value was cut: half a value was acted on.",
        "completed",
        calls=("cut in the last value",),
        mutations=("cut after the arguments",),
        done=False,
        kind="cut-stream",
    ),
    Scenario(
        "cut-optional",
        "the stream ends inside an argument that has a default",
        "A cut value, or the default in its place, was taken for what the model meant.",
        "completed",
        calls=("cut in the last value",),
        mutations=("cut after the arguments",),
        done=False,
        optional=True,
        kind="cut-stream",
    ),
)

_STOPS: tuple[Scenario, ...] = (
    Scenario(
        "length-whole-arguments",
        "the token limit, after whole arguments",
        "The model was stopped before it had finished deciding.",
        "completed",
        stop="length",
        kind="stopped-short",
    ),
    Scenario(
        "length-item-incomplete",
        "the token limit, the item marked incomplete",
        "Both the response and the call said that they were incomplete.",
        "completed",
        stop="length",
        mutations=("item incomplete",),
        apis=("responses",),
        kind="stopped-short",
    ),
    Scenario(
        "length-cut-arguments",
        "the token limit, inside the arguments",
        "The model was stopped in the middle of the arguments.",
        "completed",
        calls=("cut",),
        stop="length",
        mutations=("item incomplete",),
        kind="stopped-short",
    ),
    Scenario(
        "length-cut-in-last-value",
        "the token limit, inside the last value",
        "The model was stopped in the middle of a value: half of it was acted on.",
        "completed",
        calls=("cut in the last value",),
        stop="length",
        mutations=("item incomplete",),
        kind="stopped-short",
    ),
    Scenario(
        "length-cut-optional",
        "the token limit, inside an argument that has a default",
        "A cut value, or the default in its place, was taken for what the model meant.",
        "completed",
        calls=("cut in the last value",),
        stop="length",
        mutations=("item incomplete",),
        optional=True,
        kind="stopped-short",
    ),
    Scenario(
        "length-empty-arguments",
        "the token limit, before the arguments",
        "No argument had come yet, and that was taken for {}.",
        "completed",
        calls=("empty",),
        stop="length",
        mutations=("item incomplete",),
        optional=True,
        kind="stopped-short",
    ),
    Scenario(
        "content-filter",
        "a content filter stops it, after whole arguments",
        "The provider withdrew the response, and the call in it ran.",
        "completed",
        stop="filter",
        kind="stopped-short",
    ),
    Scenario(
        "failed-after-call",
        "the provider fails, after whole arguments",
        "The provider said that the response had failed, and the call in it ran.",
        "completed",
        _LABORATORY,
        stop="failed",
        kind="failed-midway",
    ),
    Scenario(
        "error-event",
        "an error event comes, after whole arguments",
        "An error in the middle of the stream was passed over.",
        "completed",
        _LABORATORY,
        mutations=("flat error",),
        apis=("responses",),
        kind="error-in-the-stream",
    ),
    Scenario(
        "nested-error-event",
        "an error event of another form comes",
        "An error in the middle of the stream was passed over.",
        "completed",
        _LABORATORY,
        mutations=("nested error",),
        apis=("responses",),
        kind="error-in-the-stream",
    ),
)

_CONTRADICTIONS: tuple[Scenario, ...] = (
    Scenario(
        "end-restates-other-arguments",
        "the end restates other arguments",
        "Two versions of the call were there, and one of them ran.",
        "calls_equal",
        _ALL_OR_NOTHING,
        restates=("other value",),
        apis=("responses",),
        kind="corrected-by-done",
    ),
    Scenario(
        "end-restates-nothing",
        "the end restates no call",
        "The complete response holds no call. Some servers never restate, and leniency is meant.",
        "none_omitted",
        _ALL_OR_NOTHING,
        mutations=("nothing at the end",),
        apis=("responses",),
        kind="nothing-restated",
    ),
    Scenario(
        "name-twice",
        "an argument's name comes twice",
        "Two readers of the same arguments would do two different things.",
        "strict_json",
        _ALL_OR_NOTHING,
        calls=("name twice",),
        kind="duplicate-keys",
    ),
    Scenario(
        "unknown-argument",
        "an argument comes that the schema does not allow",
        "The schema knows no such argument: it was handed on all the same, or left out.",
        "schema",
        _ALL_OR_NOTHING,
        calls=("unknown argument",),
        kind="arguments-off-schema",
    ),
    Scenario(
        "wrong-type",
        "an argument is of another type",
        "The tool was given a value that its schema refuses, or a guess at what was meant.",
        "schema",
        _ALL_OR_NOTHING,
        calls=("wrong type",),
        kind="arguments-off-schema",
    ),
)

_BATCHES: tuple[Scenario, ...] = (
    Scenario(
        "second-call-cut",
        "the second of two calls is cut",
        "One call of a broken response ran beside one that could not.",
        "strict_json",
        _ALL_OR_NOTHING,
        calls=("whole", "cut"),
        kind="broken-arguments",
    ),
    Scenario(
        "second-call-cut-in-last-value",
        "the second of two calls is cut in its last value",
        "One call of a broken response ran, or half a value was acted on.",
        "strict_json",
        _ALL_OR_NOTHING,
        calls=("whole", "cut in the last value"),
        kind="broken-arguments",
    ),
    Scenario(
        "unknown-tool-beside",
        "a tool that was never offered stands beside a good call",
        "One call of a response that asks for the impossible ran.",
        "exposed",
        _ALL_OR_NOTHING,
        calls=("whole", "unknown tool"),
        kind="unknown-tool",
    ),
    Scenario(
        "call-id-twice",
        "two calls have one ID",
        "A result can no longer be told apart, and one request may have run twice.",
        "call_ids",
        _ALL_OR_NOTHING,
        calls=("whole", "same ID"),
        kind="duplicate-call-id",
    ),
    Scenario(
        "call-after-end",
        "a second call comes after the end",
        "What came after the end was acted on as well.",
        "",
        _LABORATORY,
        calls=("whole", "whole"),
        mutations=("second call after the end",),
        may_run=1,
        kind="sent-after-the-end",
    ),
)

_LIVELY: tuple[Scenario, ...] = (
    Scenario(
        "empty-arguments",
        "a completed call with empty arguments",
        "Empty text was taken for {}; some servers send it so, and leniency is meant.",
        "strict_json",
        _ALL_OR_NOTHING,
        calls=("empty",),
        optional=True,
        may_run=1,
        kind="broken-arguments",
    ),
    Scenario(
        HELD_OPEN,
        "the response completes, and the connection stays open",
        "The agent has to let go of a response that has ended.",
        "",
        _OPENING_ONLY,
        ends="held",
        may_run=1,
    ),
    Scenario(
        USAGE_TWICE,
        "the usage comes on every event",
        "Usage that comes again must be counted once.",
        "",
        _VOCABULARY,
        mutations=("usage again",),
        apis=("chat", "messages"),
        may_run=1,
        kind="cumulative-usage",
    ),
)

HOSTILE: tuple[Scenario, ...] = (*_CUTS, *_STOPS, *_CONTRADICTIONS, *_BATCHES, *_LIVELY)
SCENARIOS: dict[str, Scenario] = {each.name: each for each in (*CONTROLS, *HOSTILE)}
