"""A small agent to attack: everything that a loop needs, but for the decision what runs.

    attack(SmallAgent(decide), tool="edit")

`decide(events, run)` gets the events of one response as they come, and calls
`run(call_id, name, arguments)` for what is to run, at the moment when it has decided so.
"""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from agentlib.attack.arguments import Target, make_target
from agentlib.attack.mutations import encode
from agentlib.attack.scenario import Scenario
from agentlib.attack.scenarios import SCENARIOS
from agentlib.attack.serialize import as_served, as_stream
from agentlib.conformance.dialects.common import Native
from agentlib.conversation import Catalog, ToolSpec, user
from agentlib.jsonvalues import FrozenObject, thaw
from agentlib.probe import ran as note
from agentlib.providers.responses_request import encode_request
from agentlib.recordings.capture import Capture
from agentlib.sse import EventStreamDecoder, decode_event

Run: TypeAlias = Callable[[str, str, Mapping[str, Any]], None]
Decide: TypeAlias = Callable[[Iterator[Native], Run], object]

MAX_TURNS = 4
# How long it waits for an answer, and then for each next event, in seconds.
OPENING, PATIENCE = 5.0, 0.3
_LEVEL = {"type": "object", "properties": {"level": {"type": "integer"}}}
TOOLS = Catalog(
    [
        ToolSpec.strings("edit", "Replace a text in a file.", path="", old="", new=""),
        ToolSpec(
            "reset", "Go back to a level.", FrozenObject({**_LEVEL, "additionalProperties": False})
        ),
    ]
)
ASKED = encode_request("model", [user("Please repair add().")], TOOLS)


class SmallAgent:
    """An agent of the Responses API whose tools only note that they ran; call it to run it."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide

    def __call__(self) -> None:
        """Ask the model until a response lets nothing run."""
        history: list[Native] = ASKED["input"]
        for _ in range(MAX_TURNS):
            ran: list[Native] = []

            def run(call_id: str, name: str, arguments: Mapping[str, Any], ran: Any = ran) -> None:
                note(name, **arguments)
                ran += _exchange(call_id, name, arguments)

            self._decide(stream(history), run)
            if not ran:
                return
            history = [*history, *ran]


def _exchange(call_id: str, name: str, arguments: Mapping[str, Any]) -> list[Native]:
    text = json.dumps(thaw(arguments))
    call = {"type": "function_call", "call_id": call_id, "name": name, "arguments": text}
    return [call, {"type": "function_call_output", "call_id": call_id, "output": "done"}]


def stream(history: list[Native]) -> Iterator[Native]:
    """Yield the events of one response, from the server that OPENAI_BASE_URL names.

    Raises OSError where the connection breaks, or no event comes for PATIENCE seconds.
    """
    root = urlsplit(os.environ["OPENAI_BASE_URL"])
    body = {**ASKED, "input": history}
    connection = http.client.HTTPConnection(root.hostname or "", root.port, timeout=OPENING)
    answer = None
    try:
        connection.request("POST", f"{root.path}/responses", json.dumps(body))
        sock = connection.sock
        answer = connection.getresponse()
        sock.settimeout(PATIENCE)
        decoder, latest = EventStreamDecoder(), time.monotonic()
        while piece := answer.read1(65_536):
            for event in decoder.feed(piece):
                latest = time.monotonic()
                if not (event.empty or event.done):
                    yield dict(decode_event(event))
            if time.monotonic() - latest > PATIENCE:
                raise TimeoutError("the connection lives, and no event comes")
    finally:
        connection.close()
        if answer is not None:
            answer.close()


@cache
def target_of(scenario: Scenario) -> Target:
    """Return the tool of the small agent that a scenario asks for."""
    name = "reset" if scenario.optional else "edit"
    tool = TOOLS.get(name)
    if tool is None:
        raise LookupError(f"the small agent has no tool {name!r}")
    return make_target(name, thaw(tool.parameters), None)


@cache
def events_of(scenario: Scenario) -> list[Native]:
    """Return the events that the small agent is given in a scenario; nobody may change them."""
    return as_served(
        encode(scenario, target_of(scenario), "responses"), "responses", {"model": "model"}
    )


@cache
def stream_of(name: str) -> Capture:
    """Return what the small agent is given in the scenario `name`, to step through."""
    source = as_stream(events_of(SCENARIOS[name]), "responses", done=False)
    return Capture.from_bytes(source, name, "responses", "sse")
