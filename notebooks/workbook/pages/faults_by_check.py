"""One damaged stream for each check of the gate, which that check and no other refuses.

They show that no row of the table is there for decoration: take one away, and its stream runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentlib.fixtures import capture
from agentlib.recordings.capture import Capture

Native: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A damaged stream: the only check that refuses it, what was done to it, and the stream."""

    check: str
    what: str
    capture: Capture


def one_fault_each() -> tuple[Fault, ...]:
    """Return one fault for each check, in the order of the gate's table, all by `tools()`."""
    edit, test, two = capture("success_2_edit"), capture("success_3_test"), capture("interleaved")
    longer = '{\\"path\\": ' + " " * 16_000
    faults = (
        Fault("opened", "response.created is lost", edit.drop(1)),
        Fault("lifecycle", "a fragment is sent twice", edit.double(13)),
        Fault("limits", "16,000 blanks", edit.replace('{\\"path\\": ', longer, event=12)),
        Fault(
            "completed",
            "the body says incomplete",
            edit.replace('"status":"completed","error"', '"status":"incomplete","error"'),
        ),
        Fault(
            "response_id",
            "another response completes",
            edit.replace("resp_edit_1", "resp_edit_9", event=18),
        ),
        Fault("replayable", "the model moves the mouse", _with_mouse(test)),
        Fault("call_ids", "two calls, one call ID", two.replace("call_read_2", "call_read_1")),
        Fault(
            "texts_equal",
            "the end says another text",
            edit.replace("I will repair it.", "I have repaired it.", event=18),
        ),
        Fault(
            "calls_equal",
            "the end says other arguments",
            edit.replace("return a + b", "return a * b", event=18),
        ),
        Fault("none_omitted", "the end leaves a call out", _with_output(two, lambda out: out[:1])),
        Fault("none_invented", "the end adds a call", _with_output(test, _add_a_call)),
        Fault("exposed", "a tool that nobody exposed", _renamed(test, "shell")),
        Fault("strict_json", "one name twice", capture("duplicate_key")),
        Fault("object", "an array as arguments", test.replace('"{}"', '"[]"')),
        Fault(
            "schema",
            "a parameter that test has not",
            test.replace('"{}"', '"{\\"level\\": 3}"'),
        ),
    )
    return tuple(Fault(f.check, f.what, _named(f.capture, f.what)) for f in faults)


def _named(stream: Capture, name: str) -> Capture:
    return Capture.from_events(stream.events, name, stream.provider)


def _renamed(stream: Capture, name: str) -> Capture:
    # The first event echoes the catalog, which stays as it is.
    for number in range(2, len(stream.events) + 1):
        if '"name":"test"' in stream.events[number - 1].raw:
            stream = stream.replace('"name":"test"', f'"name":"{name}"', event=number)
    return stream


def _with_mouse(stream: Capture) -> Capture:
    item = {"id": "cu_1", "type": "computer_call", "status": "completed", "call_id": "call_cu_1"}
    natives = _natives(stream)
    natives[-1]["response"]["output"].append(item)
    place = {"output_index": 1, "item": item}
    added = {"type": "response.output_item.added", **place}
    done = {"type": "response.output_item.done", **place}
    return _unnumbered(stream, [*natives[:-1], added, done, natives[-1]])


def _with_output(stream: Capture, change: Callable[[list[Native]], list[Native]]) -> Capture:
    natives = _natives(stream)
    body = natives[-1]["response"]
    body["output"] = change(body["output"])
    return _unnumbered(stream, natives)


def _add_a_call(output: list[Native]) -> list[Native]:
    return [*output, {**output[0], "id": "fc_9", "call_id": "call_test_9"}]


def _natives(stream: Capture) -> list[Native]:
    return [deepcopy(event.data) for event in stream.events]


def _unnumbered(stream: Capture, natives: Iterable[Native]) -> Capture:
    # Sequence numbers are optional; without them an event can be added without renumbering.
    events = [{k: v for k, v in n.items() if k != "sequence_number"} for n in natives]
    return Capture.from_events(events, stream.name, stream.provider)
