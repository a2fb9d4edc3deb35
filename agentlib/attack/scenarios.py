"""Every scenario of an attack: the controls, and the hostile ones by subject."""

from __future__ import annotations

from agentlib.attack.cut_streams import CUTS, SILENCES
from agentlib.attack.scenario import (
    ALL_OR_NOTHING,
    GOOD_CALL,
    GOOD_TEXT,
    HELD_OPEN,
    OPENING_ONLY,
    USAGE_TWICE,
    VOCABULARY,
    Scenario,
)
from agentlib.attack.stopped_streams import STOPS
from agentlib.attack.wrong_calls import BATCHES, CONTRADICTIONS

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

_LIVELY: tuple[Scenario, ...] = (
    Scenario(
        "empty-arguments",
        "a completed call with empty arguments",
        "Empty text was taken for {}; some servers send it so, and leniency is meant.",
        "strict_json",
        ALL_OR_NOTHING,
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
        OPENING_ONLY,
        ends="held",
        may_run=1,
    ),
    Scenario(
        USAGE_TWICE,
        "the usage comes on every event",
        "Usage that comes again must be counted once.",
        "",
        VOCABULARY,
        mutations=("usage again",),
        apis=("chat", "messages"),
        may_run=1,
        kind="cumulative-usage",
    ),
)

HOSTILE: tuple[Scenario, ...] = (*CUTS, *SILENCES, *STOPS, *CONTRADICTIONS, *BATCHES, *_LIVELY)
SCENARIOS: dict[str, Scenario] = {each.name: each for each in (*CONTROLS, *HOSTILE)}
