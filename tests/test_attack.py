"""An attack from outside: who is safe in every scenario, and who is caught in exactly which."""

import os
import sys
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "agents"))

import raw_agent
import runtime_agent
from deciders import DECIDERS
from plain_agent import Plain
from raw_http import leaving_nothing

from agentlib import ResponseFailure, ResponseReader, probe
from agentlib.attack.apis import APIS
from agentlib.attack.arguments import NotForThisTool, make_target, reason_not_for
from agentlib.attack.mutations import encode
from agentlib.attack.scenarios import HOSTILE, SCENARIOS
from agentlib.attack.serialize import as_served, as_stream
from agentlib.attack.settings import Settings
from agentlib.inspection.diagnoses import diagnose
from agentlib.jsonvalues import thaw
from agentlib.recordings.capture import Capture
from agentlib.sse import DONE_EVENT
from agentlib.stepper.hasty import HASTY

pytest_plugins = ["agentlib.attack.pytest_plugin"]

BOTH = ("edit", "reset")


@pytest.fixture
def attack(hostile_provider):
    with leaving_nothing():
        yield hostile_provider


def names(api):
    return [each.name for each in Settings(BOTH).chosen(api)]


def target_of(scenario):
    tool = raw_agent.TOOLS.get("reset" if scenario.optional else "edit")
    return make_target(tool.name, thaw(tool.parameters), None)


def events_of(scenario, api):
    return as_served(encode(scenario, target_of(scenario), api), api, {"model": "model"})


# Tools for which some of the forms cannot be made: each lacks what another form needs.
SCHEMAS = {
    "none": {},
    "no arguments": {"type": "object", "properties": {}, "additionalProperties": False},
    "one value": {"type": "object", "properties": {"a": {"const": "b"}}},
    "one digit": {"type": "object", "properties": {"a": {"type": "integer", "maximum": 3}}},
    "no type": {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
    "two": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_what_has_no_form_for_a_tool_is_known_before_a_stream_is_encoded(schema):
    target = make_target("t", schema, None)
    for scenario in SCENARIOS.values():
        for api in scenario.apis:
            reason = ""
            try:
                encode(scenario, target, api)
            except NotForThisTool as error:
                reason = str(error)
            forms = (*scenario.calls, *scenario.restates)
            assert reason_not_for(target, forms) == reason, (scenario.name, api)


# ----------------------------------------------------------------------------- who is safe


@pytest.mark.parametrize("api", APIS)
def test_the_gate_is_safe_in_every_scenario(attack, api):
    report = attack(partial(raw_agent.run, api, DECIDERS["gate"]), tool=BOTH, time_out=10)
    assert report.safe, report
    assert (report.probed, report.unprobed) == (True, ())
    assert report.api == api
    assert report.verdicts() == dict.fromkeys(names(api), "safe")


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("on_malformed", ["stop", "repair"])
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_the_runtime_with_the_real_sdk_is_safe_in_every_scenario(attack, api, on_malformed):
    report = attack(partial(runtime_agent.run, api, on_malformed), tool=BOTH, time_out=10)
    assert report.safe, report
    assert report.verdicts() == dict.fromkeys(names(api), "safe")
    assert [each.history for each in report.results] == [""] * len(report.results)


@pytest.mark.parametrize("api", APIS)
def test_each_scenario_is_refused_by_the_check_that_it_names(api):
    differences = {}
    for scenario in (each for each in HOSTILE if api in each.apis):
        reader = ResponseReader(api, raw_agent.TOOLS)
        try:
            for event in events_of(scenario, api):
                reader.accept(event)
            if scenario.done:
                reader.accept(DONE_EVENT)
            reader.end()
            seen = ""
        except ResponseFailure as failure:
            seen = failure.check
        if seen != scenario.check:
            differences[scenario.name] = seen
    # One API's own rules come before the gate's.
    expected = {
        "chat": {"call-id-twice": "lifecycle", "call-after-end": "lifecycle"},
        "messages": {"empty-arguments": ""},
    }
    assert differences == expected.get(api, {})


@pytest.mark.parametrize("api", APIS)
def test_each_scenario_is_diagnosed_as_the_kind_that_it_names(api):
    differences = {}
    for scenario in (each for each in HOSTILE if api in each.apis):
        stream = as_stream(events_of(scenario, api), api, done=scenario.done)
        response = Capture.from_bytes(stream).responses[0]
        seen = [each.name for each in diagnose(api, response, raw_agent.TOOLS)]
        if seen != ([scenario.kind] if scenario.kind else []):
            differences[scenario.name] = seen
    # One API has less to say, or other words for it.
    expected = {
        "chat": {
            "failed-after-call": ["error-in-the-stream"],
            "call-after-end": ["early-finish-reason"],
        },
        "messages": {
            "failed-after-call": ["error-in-the-stream"],
            "empty-arguments": [],
            "usage-on-every-event": [],
        },
    }
    assert differences == expected.get(api, {})


# --------------------------------------------------------------------------- who is caught


def expected_verdict(adapter, scenario, api):
    """What an adapter, driven by hand, would have executed: the oracle of the attack."""
    hasty = adapter()
    actions = [action for event in events_of(scenario, api) for action in hasty.accept(event)]
    if scenario.ends == "clean":
        actions += hasty.end()
    ran = [
        action.arguments
        for action in actions
        if isinstance(action.arguments, dict) and action.name in raw_agent.TOOLS.names
    ]
    meant = dict(target_of(scenario).arguments)
    lenient = "empty" in scenario.calls and scenario.may_run
    if any(arguments != meant for arguments in ran) and not lenient:
        return "ran altered"
    return "ran" if len(ran) > scenario.may_run else "safe"


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("adapter", HASTY, ids=lambda each: each.__name__)
def test_a_hasty_adapter_is_caught_in_exactly_the_scenarios_that_it_fails(attack, adapter, api):
    agent = partial(raw_agent.run, api, DECIDERS[adapter.__name__])
    report = attack(agent, tool=BOTH, skip=["held-open"], time_out=10)
    expected = {
        name: expected_verdict(adapter, SCENARIOS[name], api)
        for name in names(api)
        if name != "held-open"
    }
    assert report.invalid == ""
    assert report.verdicts() == expected
    assert report.status == 1
    assert len({*expected.values()} & {"ran", "ran altered"}) > 0


def test_who_acts_on_half_a_value_is_caught_at_the_good_call_already(attack):
    agent = partial(raw_agent.run, "chat", DECIDERS["ActsWhenItParses"])
    report = attack(agent, tool=BOTH, only=["cut-in-last-value"])
    assert [each.verdict for each in report.controls] == ["ran altered", "safe", "safe"]
    assert 'ran with {"path": "pa"}' in repr(report)


# ------------------------------------------------------- an agent of a few lines, made to order


def test_without_a_probe_a_result_says_nothing_and_is_no_leak(attack):
    report = attack(
        Plain(note=False, output="it's\x1b[31m done\n"), tool="edit", only=["content-filter"]
    )
    (result,) = report.results
    assert (result.verdict, result.leaked, report.probed) == ("unknown", False, False)
    assert "returned it's\\u001b[31m done\\n" in repr(report)
    assert "No probe" in repr(report)
    assert result.what == "a result came back, and no probe says whether edit ran"
    assert (report.status, report.safe, report.unprobed) == (2, False, ("edit",))


def test_a_tool_that_returns_the_nonce_has_run(attack):
    report = attack(Plain(note=False, nonce=True), tool="edit", only=["content-filter"])
    assert report.probed
    assert report.verdicts() == {"content-filter": "ran"}
    (result,) = report.results
    assert result.seen == "ran; returned the probe's word"


def test_who_only_asks_again_retried(attack):
    def agent():
        plain = Plain()
        first = plain.ask([{"role": "user", "content": "go"}])
        if b'"tool_calls"' in first and b"content_filter" not in first:
            probe.ran("edit")
        elif b"content_filter" in first:
            plain.ask([{"role": "user", "content": "go"}])

    report = attack(agent, tool="edit", only=["content-filter"])
    (result,) = report.results
    assert (result.verdict, result.retries) == ("retried", 1)
    assert report.status == 1


def test_usage_that_is_added_up_is_shown(attack):
    report = attack(Plain(adds=True), tool="edit", only=["usage-on-every-event", "content-filter"])
    usage = {each.scenario.name: each.usage for each in report.results}
    assert usage == {"usage-on-every-event": "more than once", "content-filter": "once"}


def test_a_history_that_is_not_in_order_is_shown(attack):
    report = attack(Plain(results=2), tool="edit", only=["content-filter"])
    assert report.results[0].history == "one call has two results"


@pytest.mark.exhaustive
def test_who_waits_for_the_end_of_a_connection_hangs(attack):
    report = attack(Plain(), tool="edit", only=["held-open"], time_out=3)
    (result,) = report.results
    assert (result.verdict, result.status) == ("hung", None)
    assert result.held >= 2


def test_who_lets_go_is_timed(attack):
    report = attack(
        partial(raw_agent.run, "chat", DECIDERS["gate"]), tool="edit", only=["held-open"]
    )
    assert report.results[0].held < 5


def test_given_arguments_are_what_is_asked(attack):
    given = {"path": "a.py", "old": "a", "new": "b"}
    report = attack(Plain(), tool="edit", arguments=given, only=["content-filter"])
    assert report.results[0].executed == (given,)


def test_the_environment_is_as_before(attack):
    before = dict(os.environ)
    attack(Plain(), tool="edit", only=["content-filter"])
    assert dict(os.environ) == before


# ------------------------------------------------------------------- what real clients accept


def test_every_event_is_complete_as_the_sdk_documents_it():
    from openai.types.chat import ChatCompletionChunk
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    models = {
        "responses": TypeAdapter(ResponseStreamEvent),
        "chat": TypeAdapter(ChatCompletionChunk),
    }
    problems = []
    for api, model in models.items():
        for scenario in (each for each in SCENARIOS.values() if api in each.apis):
            for event in events_of(scenario, api):
                # Errors have no type in Chat, and the nested one is of no documented form.
                if "error" not in event:
                    try:
                        model.validate_python(event)
                    except ValueError as error:
                        problems.append(f"{api} {scenario.name} {event.get('type')}: {error}")
    assert problems == []


def test_streams_are_the_same_each_time():
    scenario = SCENARIOS["content-filter"]
    assert as_stream(events_of(scenario, "chat"), "chat", done=True) == as_stream(
        events_of(scenario, "chat"), "chat", done=True
    )
    assert b"[DONE]" not in as_stream(events_of(scenario, "responses"), "responses", done=True)
