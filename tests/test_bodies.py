"""Whole bodies: each gives the decision that its stream gives, and none that is not complete."""

import copy
import json
from pathlib import Path

import pytest

from agentlib.attack.serialize import as_body, as_served
from agentlib.commands import main
from agentlib.conformance.dialects.registry import DIALECTS
from agentlib.conformance.script import INVALID, SCRIPTS, STOPS, catalog
from agentlib.conversation import Catalog
from agentlib.failures import ResponseFailure
from agentlib.jsonvalues import thaw
from agentlib.providers.bodies import api_of_body, body_events
from agentlib.providers.registry import PROVIDERS
from agentlib.reader import ResponseReader
from agentlib.recordings.capture import Capture
from agentlib.sse import DONE_EVENT

FIXTURES = Path(__file__).parents[1] / "fixtures"
STREAMS = sorted((FIXTURES / "streams").glob("*.sse"))
TOOLS = Catalog.from_json(json.loads((FIXTURES / "tools.json").read_text("utf-8")))


def decided(api, events, tools=TOOLS, *, done=False):
    """Return the decision of a stream that ends cleanly, or why there is none."""
    reader = ResponseReader(api, tools, native=True)
    try:
        decisions = [reader.accept(event) for event in events]
        if done:
            reader.accept(DONE_EVENT)
        decision = next(filter(None, decisions), None) or reader.end()
    except ResponseFailure as failure:
        return failure
    return decision


def said(decision):
    calls = [(call.call_id, call.name, thaw(call.arguments)) for call in decision.calls]
    return decision.text, decision.refusal, calls, decision.usage


def body_of(api, events):
    """Return what these events add up to, or None where they restate no whole response."""
    if api == "responses":
        ends = [
            e["response"]
            for e in events
            if e["type"].startswith("response.") and "id" in e.get("response", {})
        ]
        return {"object": "response", **ends[-1]} if ends else None
    if api == "gemini":
        return gemini_body(events)
    return as_body(events, api)


def gemini_body(events):
    parts, calls, last = [], [], {}
    for event in events:
        for candidate in event.get("candidates", ()):
            last |= {k: v for k, v in candidate.items() if k != "content"}
            for part in candidate.get("content", {}).get("parts", ()):
                call = part.get("functionCall")
                if call is None:
                    parts.append(part)
                    continue
                if "name" in call:
                    kept = {k: v for k, v in call.items() if k != "willContinue"}
                    calls.append({"args": {}, **kept})
                    parts.append({**part, "functionCall": calls[-1]})
                for piece in call.get("partialArgs", ()):
                    name = piece["jsonPath"].split(".")[1]
                    (value,) = (v for k, v in piece.items() if k.endswith("Value"))
                    before = calls[-1]["args"].get(name, "")
                    calls[-1]["args"][name] = before + value if isinstance(value, str) else value
                calls[-1].pop("partialArgs", None)
    last["content"] = {"parts": parts}
    whole = {"candidates": [last], "responseId": "r_1"}
    usages = [event["usageMetadata"] for event in events if "usageMetadata" in event]
    return {**whole, **({"usageMetadata": usages[-1]} if usages else {})}


def encoded(script):
    for api in PROVIDERS:
        dialect = DIALECTS[api]
        # The kit's own bodies hold no thinking.
        if dialect.expresses(script) and not (api == "messages" and script.reasoning):
            events = dialect.encode(script, dialect.framings[0])
            yield api, dialect, [sent.event for sent in events]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_each_script_gives_the_same_decision_whole_and_streamed(script):
    for api, _, events in encoded(script):
        served = events if api == "gemini" else as_served(events, api, {})
        if script.refusal and api == "chat":
            continue  # the kit's body of a chat says no refusal
        body = body_of(api, served)
        before = copy.deepcopy(body)
        assert api_of_body(body) == api
        decision = decided(api, body_events(api, body), catalog())
        assert not isinstance(decision, ResponseFailure), (api, decision)
        assert said(decision) == said(decided(api, served, catalog()))
        assert body == before


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_each_authored_stream_that_is_released_is_so_as_a_whole_body_too(path):
    capture = Capture.load(path)
    for response in capture.responses:
        events = [event.data for event in response.events]
        streamed = decided(capture.provider, events, done=response.done_marker)
        if isinstance(streamed, ResponseFailure):
            continue
        body = body_of(capture.provider, events)
        decision = decided(capture.provider, body_events(capture.provider, body))
        assert not isinstance(decision, ResponseFailure), decision
        assert said(decision) == said(streamed)


ONE = {"path": "aab.py"}
WHOLE = {
    "responses": {
        "object": "response",
        "id": "resp_1",
        "status": "completed",
        "output": [
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_a",
                "name": "read",
                "arguments": json.dumps(ONE),
                "status": "completed",
            }
        ],
    },
    "chat": {
        "object": "chat.completion",
        "id": "chat_1",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_a",
                            "type": "function",
                            "function": {"name": "read", "arguments": json.dumps(ONE)},
                        }
                    ],
                },
            }
        ],
    },
    "messages": {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "call_a", "name": "read", "input": ONE}],
    },
    "gemini": {
        "responseId": "r_1",
        "candidates": [
            {
                "finishReason": "STOP",
                "content": {
                    "parts": [{"functionCall": {"id": "call_a", "name": "read", "args": ONE}}]
                },
            }
        ],
    },
}
# Where a body says how it ended, and what else its API may say there.
ENDS = {
    "responses": (("status",), ("failed", "incomplete", "in_progress", "queued", "cancelled")),
    "chat": (("choices", 0, "finish_reason"), ("length", "content_filter", "error", "stopped")),
    "messages": (("stop_reason",), ("max_tokens", "refusal", "pause_turn", "end_turn", "other")),
    "gemini": (
        ("candidates", 0, "finishReason"),
        ("MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "OTHER", "STOPPED"),
    ),
}


def ended(api, value):
    body = copy.deepcopy(WHOLE[api])
    (*path, last), _ = ENDS[api]
    inner = body
    for step in path:
        inner = inner[step]
    inner[last] = value
    return body


def test_each_api_has_a_form_of_its_body():
    assert list(WHOLE) == list(PROVIDERS)
    for api, body in WHOLE.items():
        assert api_of_body(body) == api
        decision = decided(api, body_events(api, body), catalog())
        assert said(decision)[2] == [("call_a", "read", ONE)]
    with pytest.raises(LookupError):
        body_events("unknown", {})


@pytest.mark.parametrize(
    ("api", "value"),
    [(api, value) for api, (_, values) in ENDS.items() for value in (*values, None, "", 7)],
)
def test_a_body_that_is_not_complete_releases_nothing(api, value):
    failure = decided(api, body_events(api, ended(api, value)), catalog())
    assert isinstance(failure, ResponseFailure)
    cut = value in ("length", "max_tokens", "MAX_TOKENS")
    assert failure.cut_by_length is cut


@pytest.mark.parametrize("script", INVALID, ids=lambda script: script.name)
def test_a_body_with_a_call_that_must_not_run_releases_nothing(script):
    for api, _, events in encoded(script):
        if api in ("messages", "chat"):
            continue  # their bodies are made of arguments that parse, or of IDs that are there
        body = body_of(api, events)
        assert isinstance(decided(api, body_events(api, body), catalog()), ResponseFailure), api


@pytest.mark.parametrize("stop", [stop for stop in STOPS if stop not in ("complete", "failed")])
def test_a_script_that_stopped_releases_nothing_as_a_body(stop):
    for script in SCRIPTS:
        for api, _, events in encoded(script.stopped(stop)):
            served = events if api == "gemini" else as_served(events, api, {})
            body = body_of(api, served)
            assert isinstance(decided(api, body_events(api, body), catalog()), ResponseFailure)


JUNK = (None, 7, "x", [], {}, [7], [{}], {"type": 7}, [[]], True)


@pytest.mark.parametrize("api", WHOLE)
def test_no_body_breaks_the_reader(api):
    def mangled(value):
        yield from JUNK
        if isinstance(value, dict):
            for name, inner in value.items():
                yield {key: v for key, v in value.items() if key != name}
                yield from ({**value, name: other} for other in mangled(inner))
        elif isinstance(value, list):
            for at, inner in enumerate(value):
                yield from ([*value[:at], other, *value[at + 1 :]] for other in mangled(inner))

    for body in mangled(WHOLE[api]):
        if isinstance(body, dict):
            api_of_body(body)
            decided(api, body_events(api, body), catalog())


@pytest.mark.parametrize("api", WHOLE)
@pytest.mark.parametrize("indent", [None, 2])
def test_inspect_reads_a_body_that_was_not_streamed(tmp_path, capsys, api, indent):
    path = tmp_path / "body.json"
    path.write_text(json.dumps(WHOLE[api], indent=indent), "utf-8")
    assert main(["inspect", "--json", str(path)]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["provider"] == api
    assert row["calls"][0]["name"] == "read"
    assert "from a whole response, which was not streamed" in row["notes"]
    path.write_text(json.dumps(ended(api, ENDS[api][1][0]), indent=indent), "utf-8")
    assert main(["inspect", "--json", str(path)]) == 1
