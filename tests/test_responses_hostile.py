"""Responses streams that disagree with themselves, in every way that has been seen."""

import copy
import json
from functools import partial

import pytest
from streams import (
    BARE,
    LIMITS,
    ONE_CALL,
    TEXT_THEN_CALL,
    THREE_CALLS,
    TOOLS,
    Call,
    Framing,
    Say,
    Story,
    after,
    edited,
    output,
    read,
    refused,
    rejected,
    tell,
)

from agentlib import Limits

# ------------------------------------------------------------------------------------ the opening


def test_the_response_opens_once_and_first():
    events = tell(ONE_CALL, BARE)
    for place in range(2, len(events)):
        failure = refused([*events[1:place], events[0], *events[place:]], "opened")
        assert failure.event == 1
    refused(after(events, "created", events[0]), "opened")
    refused(after(events, "in_progress", events[0]), "opened")
    refused(events[1:], "opened")


def test_nothing_of_an_item_may_precede_the_opening():
    events = tell(ONE_CALL, BARE)
    queued = {**events[1], "type": "response.queued"}
    assert read([queued, *events], TOOLS).decision
    for early in (events[1], *events[2:]):
        refused([early, *events], "opened")
        refused([queued, early, *events], "opened")
    reasoning = {"type": "response.output_item.added", "item": {"type": "reasoning", "id": "rs_1"}}
    refused([queued, reasoning, *events], "opened")


@pytest.mark.parametrize("response_id", ["", None, 7, [], {}])
def test_a_response_has_a_nonempty_id(response_id):
    for kind in ("created", "in_progress", "completed"):
        change = partial(lambda e: e["response"].update(id=response_id))
        rejected(edited(ONE_CALL, kind, change), TOOLS)
    rejected(edited(ONE_CALL, "created", lambda e: e["response"].pop("id")), TOOLS)


def test_the_response_id_is_the_same_throughout():
    def rename(event):
        event["response"]["id"] = "resp_2"

    for kind in ("in_progress", "completed"):
        refused(edited(ONE_CALL, kind, rename), "response_id")
    queued = Framing(numbered=False, before=("response.queued",))
    refused(edited(ONE_CALL, "queued", rename, queued), "response_id")


def test_the_body_says_completed_too():
    for status in (
        "incomplete",
        "in_progress",
        "failed",
        "cancelled",
        "",
        None,
        True,
        {},
        "x" * 999,
    ):
        change = partial(lambda e, s: e["response"].update(status=s), s=status)
        refused(edited(ONE_CALL, "completed", change), "completed")
    refused(edited(ONE_CALL, "completed", lambda e: e["response"].pop("status")), "completed")
    for name in ("error", "incomplete_details"):
        for value in ({"code": "x"}, {"reason": "max_output_tokens"}, {}, "", False, 0, []):
            change = partial(lambda e, n, v: e["response"].update({n: v}), n=name, v=value)
            refused(edited(ONE_CALL, "completed", change), "completed")
        change = partial(lambda e, n: e["response"].pop(n), n=name)
        assert read(edited(ONE_CALL, "completed", change), TOOLS).decision


# ---------------------------------------------------------------------------------------- identity


def test_item_id_output_index_and_call_id_agree_wherever_they_stand():
    wrong = {
        "item_id": ("fc_9", "msg_0", "", None, 7, ["fc_1"]),
        "output_index": (0, 2, -1, True, 1.0, "1", [], {}, 10**400),
        "call_id": ("call_x", "fc_1", "", 7),
        "name": ("edit", "", 7),
    }
    for kind in ("function_call_arguments.delta", "function_call_arguments.done"):
        for field, values in wrong.items():
            for value in values:
                change = partial(lambda e, f, v: e.update({f: v}), f=field, v=value)
                refused(edited(TEXT_THEN_CALL, kind, change))
    for kind in (
        "output_text.delta",
        "output_text.done",
        "content_part.added",
        "content_part.done",
    ):
        for field, values in (("item_id", ("fc_1", "x", None)), ("output_index", (1, True, "0"))):
            for value in values:
                change = partial(lambda e, f, v: e.update({f: v}), f=field, v=value)
                refused(edited(TEXT_THEN_CALL, kind, change))


def test_no_item_stands_twice_nor_two_at_one_place():
    events = tell(THREE_CALLS, BARE)
    added = [event for event in events if event["type"].endswith("item.added")]
    for event in added:
        refused(after(events, "output_item.added", event, last=True))
        again = copy.deepcopy(event)
        again["item"]["id"] += "_b"
        if "call_id" in again["item"]:
            again["item"]["call_id"] += "_b"
        refused(after(events, "output_item.added", again, last=True))
        again["output_index"] = 9
        rejected(after(events, "output_item.added", again, last=True), TOOLS)


def test_an_item_is_done_once_and_as_what_it_was():
    events = tell(ONE_CALL, BARE)
    done = next(event for event in events if event["type"].endswith("item.done"))
    refused(after(events, "output_item.done", done))
    refused(edited(ONE_CALL, "output_item.done", lambda e: e["item"].update(type="message")))
    refused(edited(ONE_CALL, "output_item.done", lambda e: e["item"].update(id="fc_9")))
    refused(edited(ONE_CALL, "output_item.done", lambda e: e["item"].update(arguments=None)))


def test_a_call_id_starts_one_call():
    events = tell(Story((Call("run_tests", "{}", "call_a"), Call("run_tests", "{}", "call_a"))))
    assert refused(events, "call_ids").event < len(events)
    for field, check in (("call_id", "call_ids"), ("name", "call_ids")):
        change = partial(lambda e, f: e["item"].update({f: ""}), f=field)
        refused(edited(ONE_CALL, "output_item.added", change), check)


@pytest.mark.parametrize(
    "more",
    [
        {"type": "response.output_text.delta", "item_id": "msg_0", "delta": "x"},
        {
            "type": "response.output_text.delta",
            "item_id": "msg_0",
            "content_index": 1,
            "delta": "x",
        },
        {"type": "response.output_text.delta", "item_id": "msg_0", "content_index": 5, "delta": ""},
        {"type": "response.refusal.delta", "item_id": "msg_0", "content_index": 7, "delta": "x"},
        {"type": "response.content_part.added", "item_id": "msg_0", "content_index": 2, "part": {}},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": " "},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": ""},
        {"type": "response.output_text.delta", "item_id": "fc_1", "delta": "x"},
        {"type": "response.function_call_arguments.delta", "item_id": "msg_0", "delta": "x"},
        {"type": "response.reasoning_text.delta", "item_id": "msg_0", "delta": "x"},
    ],
    ids=lambda more: f"{more['type']}, {more.get('content_index')}",
)
def test_no_delta_follows_its_done_or_is_of_another_kind(more):
    refused(after(tell(TEXT_THEN_CALL, BARE), "output_item.done", more, last=True))


def test_an_empty_text_is_done_too():
    start = [*tell(Story(()), BARE)[:1]]
    item = {"type": "message", "id": "msg_0", "content": []}
    start += [{"type": "response.output_item.added", "output_index": 0, "item": item}]
    done = {"type": "response.output_text.done", "item_id": "msg_0", "text": ""}
    delta = {"type": "response.output_text.delta", "item_id": "msg_0", "delta": "x"}
    refused([*start, done, delta])
    refused([*start, {**delta, "delta": ""}, done, delta])


def test_a_text_is_an_answer_or_a_refusal_and_stays_it():
    text = {"type": "response.output_text.delta", "item_id": "msg_0", "delta": "x"}
    refusal = {"type": "response.refusal.delta", "item_id": "msg_0", "delta": "x"}
    refused_done = {"type": "response.refusal.done", "item_id": "msg_0", "refusal": "x"}
    item = {"type": "message", "id": "msg_0", "content": []}
    start = [tell(Story(()))[0], {"type": "response.output_item.added", "item": item}]
    for events in ((text, refusal), (refusal, text), (text, refused_done)):
        refused([*start, *events])


def test_a_call_may_have_the_id_that_a_text_is_named_by():
    # The part of a text is named from its item, a call by its ID: the two are kept apart.
    say, call = Say(("Hello.",)), Call("run_tests", "{}", "msg_0/0")
    for items in ((say, call), (call, Say(("Hello.",)))):
        for framing in (BARE, Framing(numbered=False, interleaved=True)):
            decision = read(tell(Story(items), framing), TOOLS).decision
            assert decision.text == "Hello."
            assert [(c.call_id, c.arguments) for c in decision.calls] == [("msg_0/0", {})]


# ------------------------------------------------------------------------------------ the final say


def test_the_final_output_keeps_the_streamed_order():
    failure = refused(output(THREE_CALLS, lambda items: items[::-1]))
    assert "order" in failure.reason
    refused(output(THREE_CALLS, lambda items: [items[0], items[2], items[1], items[3]]))


def test_nothing_is_omitted_invented_or_twice_at_the_end():
    extra = {"type": "function_call", "id": "fc_9", "call_id": "call_x", "name": "run_tests"}
    extra |= {"arguments": "{}", "status": "completed"}
    empty = {"type": "message", "id": "msg_9", "content": [], "status": "completed"}
    text = {**empty, "content": [{"type": "output_text", "text": "more"}]}
    for place in range(1, 4):
        refused(output(THREE_CALLS, lambda i, n=place: i[:n] + i[n + 1 :]), "none_omitted")
        rejected(output(THREE_CALLS, lambda i, n=place: [*i[: n + 1], *i[n:]]), TOOLS)
    rejected(output(THREE_CALLS, lambda i: i[1:]), TOOLS)
    rejected(output(THREE_CALLS, lambda i: [i[0], *i]), TOOLS)
    refused(output(THREE_CALLS, lambda i: [*i, extra]), "none_invented")
    refused(output(THREE_CALLS, lambda i: [*i, empty]), "none_invented")
    refused(output(THREE_CALLS, lambda i: [*i, text]), "texts_equal")
    refused(output(Story(()), lambda _: [extra]), "none_invented")
    refused(output(Story(()), lambda _: [empty]), "none_invented")


def test_an_item_that_only_had_begun_is_not_forgotten():
    for kind in ("message", "reasoning", "web_search_call", "something_new"):
        begun = {"type": "response.output_item.added", "item": {"type": kind, "id": "x_1"}}
        refused(after(tell(ONE_CALL, BARE), "output_item.done", begun), "none_omitted")


def test_an_item_restated_as_another_kind_is_another_item():
    begun = {"type": "response.output_item.added", "item": {"type": "reasoning", "id": "rs_1"}}
    empty = {"type": "message", "id": "rs_1", "content": [], "status": "completed"}
    events = output(ONE_CALL, lambda items: [*items, empty])
    failure = refused(after(events, "output_item.done", begun), "none_omitted")
    assert "reasoning" in failure.reason


@pytest.mark.parametrize("status", ["incomplete", "in_progress", "failed", "", 1, [], None])
def test_every_final_item_is_completed(status):
    for place, check in ((0, "replayable"), (1, "calls_equal")):
        change = partial(lambda i, p: i[p].update(status=status), p=place)
        if status is None and place == 0:
            assert read(output(TEXT_THEN_CALL, change), TOOLS).decision, "null is not said"
        else:
            refused(output(TEXT_THEN_CALL, change), check)


def test_a_call_of_another_id_name_or_item_is_another_call():
    for field, check in (
        ("id", "calls_equal"),
        ("name", "calls_equal"),
        ("call_id", "none_omitted"),
    ):
        change = partial(lambda i, f: i[0].update({f: "other"}), f=field)
        refused(output(ONE_CALL, change), check)


@pytest.mark.parametrize("kind", ["reasoning", "web_search_call", "computer_call", "new", ""])
def test_what_this_adapter_cannot_replay_is_refused(kind):
    item = {"type": kind, "id": "x_1"}
    begun = {"type": "response.output_item.added", "output_index": 1, "item": item}
    events = output(ONE_CALL, lambda items: [*items, item])
    refused(after(events, "output_item.done", begun), "replayable")


# ---------------------------------------------------------------------------------- the arguments


def test_arguments_come_whole_only_where_no_delta_came():
    whole = ONE_CALL.calls[0].arguments
    for kind in ("output_item.added",):
        refused(edited(ONE_CALL, kind, lambda e: e["item"].update(arguments=whole)))
        refused(edited(ONE_CALL, kind, lambda e: e["item"].update(arguments="{}")))
    for framing in (Framing(whole="added"), Framing(whole="done"), Framing(whole="item")):
        assert read(tell(ONE_CALL, framing), TOOLS).decision
    for kind, path in (("function_call_arguments.done", None), ("output_item.done", "item")):
        for wrong in ("", "{}", f"{whole} ", whole[:-1], whole.replace("s", "S")):
            change = partial(
                lambda e, p, w: (e[p] if p else e).update(arguments=w), p=path, w=wrong
            )
            refused(edited(ONE_CALL, kind, change))


@pytest.mark.parametrize("value", [None, {"path": "a"}, [], 1, True])
def test_arguments_are_text_everywhere(value):
    for kind, path, name in (
        ("function_call_arguments.delta", None, "delta"),
        ("function_call_arguments.done", None, "arguments"),
        ("output_item.done", "item", "arguments"),
    ):
        change = partial(lambda e, p, n: (e[p] if p else e).update({n: value}), p=path, n=name)
        refused(edited(ONE_CALL, kind, change))
    if value is not None:
        refused(edited(ONE_CALL, "output_item.added", lambda e: e["item"].update(arguments=value)))


def test_limits_hold_at_exactly_their_number():
    sized = json.dumps({"path": "x" * 50})
    for framing in (Framing(piece=7), Framing(whole="added"), Framing(whole="done")):
        for spare in (0, 1):
            story = Story((Call("read_file", sized, "call_a"),))
            limits = Limits(argument_characters=len(sized) - spare)
            outcome = read(tell(story, framing), TOOLS, limits)
            assert (outcome.decision is None) is bool(spare)
            if spare:
                assert outcome.failure.check == "limits"
                assert f"{len(sized) - 1}" in outcome.failure.reason
    for refusal in (False, True):
        story = Story((Say(("x" * 30, "y" * 20), refusal=refusal),))
        assert read(tell(story), TOOLS, Limits(text_characters=50)).decision
        assert refused(tell(story), "limits", Limits(text_characters=49))
    calls = [Call("run_tests", "{}", f"call_{n}") for n in range(9)]
    assert read(tell(Story(tuple(calls[:8]))), TOOLS).decision
    assert refused(tell(Story(tuple(calls))), "limits")
    assert (LIMITS.text_characters, LIMITS.argument_characters, LIMITS.calls) == (64_000, 16_000, 8)


def test_an_endless_argument_stops_at_its_limit_and_not_at_its_end():
    white = tell(Story((Call("read_file", " " * 150_000, "call_a"),)), Framing(piece=100))
    failure = refused(white, "limits")
    assert failure.event < 200
