"""The gate: fifteen named checks, each of which can fail alone, all evaluated and all shown."""

import contextlib
from dataclasses import replace

import pytest
from streams import (
    ONE_CALL,
    TEXT_THEN_CALL,
    TOOLS,
    Call,
    Say,
    Story,
    after,
    edited,
    output,
    read,
    tell,
)

from agentlib import Catalog, Limits, ResponseFailure, ToolSpec
from agentlib.assembly import Assembly
from agentlib.gate import (
    CHECK_NAMES,
    CHECKS,
    MAX_SHOWN,
    Buffer,
    Evidence,
    Finding,
    StreamedText,
    Violation,
    difference,
    examine,
    first_failure,
    released_calls,
)
from agentlib.jsonvalues import FrozenObject
from agentlib.vocabulary import (
    Completed,
    Opened,
    Stopped,
    TerminalCall,
    TerminalOther,
    TerminalText,
)

ARGUMENTS = '{"path": "a.py"}'
CALL = TerminalCall("call_a", "read_file", ARGUMENTS, "fc_1")
SECOND = TerminalCall("call_b", "run_tests", "{}", "fc_2")
TEXT = TerminalText("msg_1/0", "Hi.")
GOOD = Evidence(
    response_id="resp_1",
    buffers=(
        Buffer("call_a", "read_file", "fc_1", ARGUMENTS, done=True),
        Buffer("call_b", "run_tests", "fc_2", "{}", done=True),
    ),
    texts=(StreamedText("msg_1/0", "Hi.", refusal=False),),
    end=Completed("resp_1", items=(TEXT, CALL, SECOND)),
    catalog=TOOLS,
)


def ended(*items, **changes):
    """Return the good evidence with another end."""
    return replace(GOOD, end=replace(GOOD.end, items=items or GOOD.end.items, **changes))


def streamed(arguments, name="read_file"):
    """Return evidence of one call, streamed and restated with this argument text."""
    return replace(
        GOOD,
        buffers=(Buffer("call_a", name, "fc_1", arguments, done=True),),
        end=Completed("resp_1", items=(TEXT, replace(CALL, arguments=arguments, name=name))),
    )


def call(**changes):
    return ended(TEXT, replace(CALL, **changes), SECOND)


ALONE = {
    "completed": [
        ended(problem="its body says incomplete"),
        replace(GOOD, end=Stopped("response.failed", "why")),
    ],
    "response_id": [ended(response_id="resp_2"), ended(response_id="")],
    "replayable": [ended(others=(TerminalOther("reasoning", "it cannot be sent back"),))],
    "call_ids": [
        replace(
            GOOD,
            buffers=(Buffer("call_a", "read_file", "fc_1", ARGUMENTS, done=True),),
            end=Completed("resp_1", items=(TEXT, CALL, CALL)),
        ),
    ],
    "texts_equal": [
        ended(replace(TEXT, text="Hi"), CALL, SECOND),
        ended(replace(TEXT, text="Hi.."), CALL, SECOND),
        ended(replace(TEXT, text="hi."), CALL, SECOND),
        ended(replace(TEXT, refusal=True), CALL, SECOND),
        ended(CALL, SECOND),
        ended(TEXT, TEXT, CALL, SECOND),
        ended(TEXT, TerminalText("msg_2/0", "more"), CALL, SECOND),
        replace(GOOD, texts=()),
    ],
    "calls_equal": [
        call(arguments='{"path": "b.py"}'),
        call(arguments='{"path":"a.py"}'),
        call(arguments=ARGUMENTS + " "),
        call(name="edit", arguments='{"path": "a", "old": "b", "new": "c"}'),
        call(item_id="fc_9"),
        call(completed=False),
    ],
    "none_omitted": [
        ended(TEXT, CALL),
        ended(TEXT, SECOND),
        ended(others=(TerminalOther("message", fault="omitted"),)),
    ],
    "none_invented": [
        ended(TEXT, CALL, SECOND, replace(SECOND, call_id="call_x")),
        ended(others=(TerminalOther("message", fault="invented"),)),
    ],
    "exposed": [streamed("{}", "delete"), streamed(ARGUMENTS, "Read_file")],
    "strict_json": [
        streamed(text)
        for text in ("", "{", "nonsense", f"{ARGUMENTS}x", '{"path": NaN}', '{"path": "\\ud800"}')
    ]
    + [streamed('{"path": "/safe", "path": "/danger"}'), streamed("[" * 3000)],
    "object": [streamed(text) for text in ("[]", "null", "true", "1", "1.5", '"{}"')],
    "schema": [
        streamed(text)
        for text in ("{}", '{"path": 1}', '{"path": null}', '{"path": "a", "more": "b"}')
    ]
    + [streamed('{"to": true}', "count"), streamed('{"to": 1.5}', "count")],
}
VIOLATIONS = ("opened", "lifecycle", "limits")


def test_good_evidence_passes_every_check():
    assert examine(GOOD) == tuple(Finding(name, "pass") for name in CHECK_NAMES)
    assert first_failure(examine(GOOD)) is None
    first, second = released_calls(GOOD)
    assert (first.call_id, first.name, first.arguments) == ("call_a", "read_file", {"path": "a.py"})
    assert (second.call_id, second.arguments) == ("call_b", {})


def test_every_check_of_the_table_is_tried_here():
    assert set(ALONE) | set(VIOLATIONS) == set(CHECK_NAMES)
    assert len(CHECK_NAMES) == len(set(CHECK_NAMES)) == 15
    assert all(check.title and check.title[0].islower() for check in CHECKS[:1])


@pytest.mark.parametrize(
    ("name", "evidence"),
    [(name, evidence) for name, cases in ALONE.items() for evidence in cases],
    ids=[f"{name} {n}" for name, cases in ALONE.items() for n in range(len(cases))],
)
def test_each_check_fails_alone(name, evidence):
    findings = examine(evidence)
    assert tuple(finding.check for finding in findings) == CHECK_NAMES
    failed = [finding for finding in findings if finding.status == "fail"]
    assert [finding.check for finding in failed] == [name]
    assert failed[0].detail
    assert first_failure(findings) is failed[0]
    if isinstance(evidence.end, Completed):
        for finding in findings:
            # What a failure keeps from being compared is not checked, and says why.
            assert finding.status in ("pass", "fail") or finding.detail
            assert finding.status != "waiting"


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_fails_its_own_check_and_what_follows_waits(name):
    broken = Evidence("resp_1", violation=Violation(name, "because"), catalog=TOOLS)
    for finding in examine(broken):
        if finding.check == name:
            assert finding == (name, "fail", "because")
        else:
            assert finding.status == ("pass" if finding.check in VIOLATIONS else "waiting")


def test_before_the_end_nothing_is_judged():
    for evidence in (Evidence(None), replace(GOOD, end=None)):
        statuses = {finding.check: finding.status for finding in examine(evidence)}
        assert statuses.pop("opened") == ("pass" if evidence.response_id else "waiting")
        early = "pass" if evidence.response_id else "waiting"
        assert (statuses.pop("lifecycle"), statuses.pop("limits")) == (early, early)
        assert set(statuses.values()) == {"waiting"}


def test_all_that_is_wrong_is_shown_and_the_first_gives_the_reason():
    many = replace(
        streamed("[", "delete"),
        response_id="resp_9",
        texts=(),
        end=Completed(
            "resp_1",
            problem="says failed",
            items=(TEXT, replace(CALL, call_id=""), replace(CALL, name="", arguments="x")),
            others=(TerminalOther("new", "unknown", "invented"),),
        ),
    )
    failed = [finding.check for finding in examine(many) if finding.status == "fail"]
    assert failed == [
        "completed",
        "response_id",
        "replayable",
        "call_ids",
        "texts_equal",
        "calls_equal",
        "none_invented",
        "exposed",
        "strict_json",
    ]
    assert first_failure(examine(many)).check == "completed"


def test_without_a_catalog_two_checks_are_not_made_and_say_so():
    unchecked = [f for f in examine(replace(GOOD, catalog=None)) if f.status != "pass"]
    assert [finding.check for finding in unchecked] == ["exposed", "schema"]
    assert {finding.status for finding in unchecked} == {"not_checked"}
    assert all(finding.detail for finding in unchecked)
    nothing = first_failure(examine(replace(GOOD, catalog=Catalog())))
    assert nothing.check == "exposed"
    assert "no tool is exposed" in nothing.detail


def test_where_nothing_is_restated_there_is_nothing_to_compare():
    bare = replace(GOOD, end=Completed("resp_1"))
    skipped = [f.check for f in examine(bare) if f.status == "not_applicable"]
    assert skipped == ["texts_equal", "calls_equal", "none_omitted", "none_invented"]
    assert first_failure(examine(bare)) is None
    assert [call.call_id for call in released_calls(bare)] == ["call_a", "call_b"]
    lone = replace(bare, texts=(StreamedText("t", "\ud800", refusal=False),))
    assert first_failure(examine(lone)).check == "texts_equal"


NOTHING = replace(GOOD, buffers=(), texts=(), end=Completed(None, items=()))
SILENT = Completed(None)
# For each check, evidence in which there is nothing that it could compare.
UNCOMPARED = {
    "opened": [Evidence(None)],
    "lifecycle": [Evidence(None)],
    "limits": [Evidence(None)],
    "completed": [Evidence("resp_1")],
    "response_id": [ended(response_id=None)],
    "replayable": [NOTHING],
    "call_ids": [NOTHING, replace(NOTHING, end=SILENT)],
    "texts_equal": [NOTHING, replace(GOOD, end=SILENT)],
    "calls_equal": [NOTHING, replace(GOOD, end=SILENT), replace(GOOD, buffers=())],
    "none_omitted": [NOTHING, replace(GOOD, end=SILENT)],
    "none_invented": [NOTHING, replace(GOOD, end=SILENT)],
    "exposed": [NOTHING, replace(GOOD, catalog=None)],
    "strict_json": [NOTHING],
    "object": [NOTHING, streamed("{")],
    "schema": [
        NOTHING,
        replace(GOOD, catalog=None),
        *(streamed(text) for text in ("{", "[]", "null")),
        streamed("{}", "delete"),
    ],
}


@pytest.mark.parametrize("name", CHECK_NAMES)
def test_a_check_that_compared_nothing_says_so(name):
    for evidence in UNCOMPARED[name]:
        (found,) = (f for f in examine(evidence) if f.check == name)
        assert found.status in ("waiting", "not_applicable", "not_checked")
        assert found.detail or found.status == "waiting"


def test_one_call_that_cannot_be_compared_keeps_the_check_of_all_from_passing():
    both = ended(TEXT, replace(CALL, arguments="{"), SECOND)
    statuses = {f.check: f.status for f in examine(both)}
    assert (statuses["object"], statuses["schema"]) == ("not_checked", "not_checked")


def released_or_not(evidence, monkeypatch, gone):
    """Judge evidence by the table without the checks `gone`; return the decision, or None."""
    rows = tuple(row for row in CHECKS if row.name not in gone)
    monkeypatch.setattr("agentlib.gate.CHECKS", rows)
    assembly = Assembly(evidence.catalog)
    assembly.accept(Opened(evidence.response_id))
    monkeypatch.setattr(assembly, "evidence", lambda: replace(evidence, end=assembly._end))
    with contextlib.suppress(ResponseFailure):
        return assembly.accept(evidence.end)
    assert assembly.failure.check in CHECK_NAMES
    assert assembly.failure.reason
    return None


GONE = [{first, second} for first in CHECK_NAMES for second in CHECK_NAMES if first <= second]


@pytest.mark.parametrize("name", ALONE)
def test_a_check_stands_when_its_neighbours_are_gone(name, monkeypatch):
    alone = set(CHECK_NAMES) - {name}
    for evidence in ALONE[name]:
        # By itself it stops what it is for; with any one or two gone, none of the rest breaks.
        assert released_or_not(evidence, monkeypatch, alone) is None
        for gone in GONE:
            decision = released_or_not(evidence, monkeypatch, gone)
            assert decision is None or name in gone
            for call in decision.calls if decision is not None else ():
                assert isinstance(call.arguments, FrozenObject)


@pytest.mark.parametrize("part", ["call_id", "name"])
def test_a_call_has_an_id_and_a_name_without_lone_surrogates(part):
    for text in ("", "a\ud800"):
        failed = [f for f in examine(call(**{part: text})) if f.status == "fail"]
        assert failed[0].check == "call_ids"


def test_the_reason_lists_a_few_of_many_exposed_tools():
    catalog = Catalog([ToolSpec.strings(f"tool_{n}", "") for n in range(40)])
    detail = first_failure(examine(replace(GOOD, catalog=catalog))).detail
    assert '"tool_0"' in detail
    assert f"and {40 - MAX_SHOWN} more" in detail
    assert len(detail) < 1000


def test_a_difference_names_the_first_character_that_differs():
    assert "character 3" in difference("abcd", "abXd")
    assert "character 5" in difference("abcd", "abcde")
    assert "character 1" in difference("", "x")
    assert len(difference("x" * 10_000 + "a" * 99, "x" * 10_000 + "b" * 99)) < 200


# The same fifteen, each by a stream of its own, through the reader.
NOISE = {"type": "response.output_item.added", "item": {"type": "reasoning", "id": "rs_1"}}
LAST = {"type": "reasoning", "id": "rs_1"}
STREAMS = {
    "opened": tell(ONE_CALL)[2:],
    "lifecycle": edited(ONE_CALL, "function_call_arguments.delta", lambda e: e.pop("item_id")),
    "limits": tell(Story((Say(("x" * 101,)),))),
    "completed": edited(ONE_CALL, "completed", lambda e: e["response"].update(status="failed")),
    "response_id": edited(ONE_CALL, "completed", lambda e: e["response"].update(id="other")),
    "replayable": after(
        output(ONE_CALL, lambda items: [*items, LAST]), "output_item.done", NOISE, last=True
    ),
    "call_ids": output(ONE_CALL, lambda items: [*items, items[0]]),
    "texts_equal": output(TEXT_THEN_CALL, lambda items: items[0]["content"][0].update(text="x")),
    "calls_equal": output(ONE_CALL, lambda items: items[0].update(status="incomplete")),
    "none_omitted": output(TEXT_THEN_CALL, lambda items: items[:1]),
    "none_invented": output(TEXT_THEN_CALL, lambda items: [*items, {**items[1], "call_id": "x"}]),
    "exposed": tell(Story((Call("delete", "{}", "call_a"),))),
    "strict_json": tell(Story((Call("count", '{"to": 1}}', "call_a"),))),
    "object": tell(Story((Call("count", "[1]", "call_a"),))),
    "schema": tell(Story((Call("count", '{"to": true}', "call_a"),))),
}


@pytest.mark.parametrize("name", CHECK_NAMES)
def test_each_check_rejects_a_stream(name):
    outcome = read(STREAMS[name], TOOLS, Limits(text_characters=100))
    assert outcome.decision is None
    assert outcome.failure.check == name
    findings = {finding.check: finding for finding in outcome.reader.assembly.findings()}
    assert tuple(findings) == CHECK_NAMES
    assert findings[name] == (name, "fail", outcome.failure.reason)
