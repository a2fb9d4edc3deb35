"""A story told as a Responses stream: it is released whole, once and at its end, or not at all."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from streams import (
    BODY_USAGE,
    KEEP_ALIVE,
    ONE_CALL,
    PLAIN,
    STORIES,
    TEXT_THEN_CALL,
    THREE_CALLS,
    TOOLS,
    Call,
    Framing,
    Say,
    Story,
    every_framing,
    plain,
    read,
    rejected,
    renumbered,
    said,
    tell,
    unnumbered,
)
from test_jsonvalues import json_objects

from agentlib import Usage
from agentlib.failures import ProtocolViolation, ProviderStopped, StreamCut
from agentlib.jsonvalues import dumps

each_story = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


def of_kind(events, *kinds):
    """Return the places of the events of these kinds, named without `response.`."""
    return [n for n, e in enumerate(events) if e["type"].removeprefix("response.") in kinds]


@each_story
def test_every_framing_of_a_story_releases_the_same_decision_at_its_last_event(story):
    texts = [item for item in story.items if isinstance(item, Say)]
    for framing in every_framing():
        events = tell(story, framing)
        outcome = read(events, TOOLS)
        assert outcome.failure is None, framing
        assert outcome.released_at == len(events), framing
        decision = outcome.decision
        assert decision.response_id == "resp_1"
        assert decision.text == "".join("".join(t.parts) for t in texts if not t.refusal)
        assert decision.refusal == "".join("".join(t.parts) for t in texts if t.refusal)
        assert decision.usage == Usage(120, 64, 30, 8)
        assert [(c.call_id, c.name) for c in decision.calls] == [
            (c.call_id, c.name) for c in story.calls
        ]
        assert said(decision) == said(read(tell(story), TOOLS).decision)
        assert read(events).decision == decision, "a catalog only adds checks"


@each_story
def test_no_prefix_releases_anything(story):
    for framing in (PLAIN, Framing(piece=1, interleaved=True), Framing(whole="added", piece=9)):
        events = tell(story, framing)
        for length in range(len(events)):
            failure = rejected(events[:length], TOOLS)
            assert isinstance(failure, StreamCut)
            assert failure.event == length
            assert failure.check == ("completed" if length else "opened")


@each_story
def test_an_event_dropped_changes_nothing_or_releases_nothing(story):
    reference = said(read(tell(story), TOOLS).decision)
    for framing in (PLAIN, Framing(numbered=False, interleaved=True)):
        events = tell(story, framing)
        for place in range(len(events)):
            outcome = read(events[:place] + events[place + 1 :], TOOLS)
            assert outcome.decision is None or said(outcome.decision) == reference
        for kind in ("created", "completed", "output_item.added"):
            for place in of_kind(events, kind):
                rejected(events[:place] + events[place + 1 :], TOOLS)


@each_story
def test_a_fragment_dropped_doubled_or_swapped_releases_nothing(story):
    events = tell(story, Framing(numbered=False, piece=1))
    for place in of_kind(events, "function_call_arguments.delta", "output_text.delta"):
        before, event, after = events[:place], events[place], events[place + 1 :]
        rejected([*before, *after], TOOLS)
        rejected([*before, event, event, *after], TOOLS)
        if after[0]["type"] == event["type"] and after[0]["delta"] != event["delta"]:
            rejected([*before, after[0], event, *after[1:]], TOOLS)


@each_story
def test_an_event_doubled_or_out_of_place_changes_nothing_or_releases_nothing(story):
    reference = said(read(tell(story), TOOLS).decision)
    for framing in (Framing(numbered=False), Framing(numbered=False, interleaved=True)):
        events = tell(story, framing)
        for place, event in enumerate(events):
            swapped = [*events[:place], *reversed(events[place : place + 2]), *events[place + 2 :]]
            doubled = [*events[: place + 1], *events[place:]]
            for changed in (swapped, doubled):
                outcome = read(changed, TOOLS)
                assert outcome.decision is None or said(outcome.decision) == reference
            if event["type"] in ("response.created", "response.output_item.added"):
                rejected(doubled, TOOLS)


@each_story
def test_with_sequence_numbers_no_event_may_be_doubled_or_out_of_place(story):
    events = tell(story)
    for place in range(len(events) - 2):
        swapped = [*events[:place], *reversed(events[place : place + 2]), *events[place + 2 :]]
        for changed in (swapped, [*events[: place + 1], *events[place:]]):
            failure = rejected(changed, TOOLS)
            assert isinstance(failure, ProtocolViolation)
            assert failure.event <= place + 2


def test_sequence_numbers_strictly_increase_where_they_are_present():
    events = tell(TEXT_THEN_CALL)
    for event in events:
        event["sequence_number"] = event["sequence_number"] * 7 + 3
    assert read(events, TOOLS).decision, "gaps are allowed"
    for event in events[::2]:
        del event["sequence_number"]
    assert read(events, TOOLS).decision, "some events may lack one"
    for event in events[1::4]:
        event["sequence_number"] = None
    assert read(events, TOOLS).decision, "null is none"
    for value in (0, 1, True, -1, 1.5, 9.0, "9", [9], {}, 2**53, 10**5000):
        changed = copy.deepcopy(tell(TEXT_THEN_CALL))
        changed[9]["sequence_number"] = value
        assert rejected(changed, TOOLS).check == "lifecycle"


def every_text(value, where=()):
    """Yield the path of every string inside a JSON value."""
    if isinstance(value, str):
        yield where
    inner = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else inner:
        yield from every_text(item, (*where, key))


def changed_at(events, place, path, change):
    changed = copy.deepcopy(events)
    target = changed[place]
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = change(target[path[-1]])
    return changed


# What says nothing about the decision: other words there, same decision.
SILENT = {"object", "role", "annotations"}


@each_story
def test_no_text_may_differ_by_one_character_anywhere(story):
    reference = said(read(tell(story), TOOLS).decision)
    events = tell(story, Framing(piece=5))
    for place, event in enumerate(events):
        for path in every_text(event):
            for change in (lambda t: t[:-1], lambda t: t + "x", lambda t: t[:-1] + "\u200b"):
                changed = changed_at(events, place, path, change)
                outcome = read(changed, TOOLS)
                if outcome.decision is not None and changed != events:
                    assert said(outcome.decision) == reference
                    # What need not come at all, or says that the item has just begun.
                    progress = event["type"] != "response.completed"
                    silent = path[-1] in SILENT or (progress and path[-1] in ("type", "status"))
                    assert silent or path[0] == "part", (event["type"], path)


@each_story
def test_every_fragment_counts(story):
    for framing in (PLAIN, Framing(whole="added"), Framing(whole="done"), Framing(whole="item")):
        events = tell(story, framing)
        for place, event in enumerate(events):
            for path in every_text(event):
                if path[-1] in ("delta", "text", "refusal", "arguments", "name", "call_id", "id"):
                    changed = changed_at(events, place, path, lambda text: f"{text}x")
                    if event["type"] != "response.content_part.added":
                        rejected(changed, TOOLS)


ENDINGS = {
    "failed": {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x"}}},
    "incomplete": {
        "type": "response.incomplete",
        "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    },
    "incomplete, bare": {"type": "response.incomplete"},
    "error": {"type": "error", "code": "server_error", "message": "It broke."},
    "error, nested": {"type": "error", "error": {"message": "It broke."}},
    "error without a type": {"error": {"type": "server_error", "message": "It broke."}},
}


@each_story
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_any_other_ending_discards_and_nothing_after_it_is_read(story, ending):
    events = unnumbered(tell(story))
    for place in range(1, len(events)):
        ended = [*events[:place], ending, *events[place:]]
        outcome = read(ended, TOOLS)
        failure = rejected(ended, TOOLS)
        assert isinstance(failure, ProviderStopped)
        assert (failure.check, failure.event) == ("completed", place + 1)
        assert outcome.reader.unread == len(events) - place
        assert outcome.reader.assembly.state == "discarded"


def test_a_failure_carries_what_was_billed_and_said():
    usage = {"usage": BODY_USAGE, "error": {"code": "x", "message": "Too much."}}
    ending = {"type": "response.failed", "response": usage}
    failure = rejected([*unnumbered(tell(ONE_CALL))[:-1], ending], TOOLS)
    assert failure.usage == Usage(120, 64, 30, 8)
    assert "Too much." in failure.reason
    assert "response.failed" in failure.reason


@each_story
def test_what_follows_a_release_changes_nothing(story):
    events = tell(story)
    more = [
        events[-1],
        events[0],
        {"type": "response.failed", "response": {"id": "resp_1"}},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_0", "delta": "x"},
        {"type": "error"},
        {"type": 7},
        None,
    ]
    outcome = read([*events, *more], TOOLS)
    assert said(outcome.decision) == said(read(events, TOOLS).decision)
    assert outcome.released_at == len(events)
    assert outcome.reader.unread == len(more)
    assert outcome.reader.assembly.state == "released"


def test_the_word_of_another_api_completes_nothing():
    events = tell(ONE_CALL)
    events[-1]["type"] = "response.done"
    assert isinstance(rejected(events, TOOLS), StreamCut)


def test_unknown_kinds_and_keep_alives_are_progress_at_any_place():
    noise = [KEEP_ALIVE, {"type": "ping"}, {"type": "response.something.new", "item_id": 3}]
    noise += [{"type": "response.output_text.annotation.added", "annotation": {}}, {"type": ""}]
    events = unnumbered(tell(THREE_CALLS))
    for place in range(len(events)):
        assert read([*events[:place], *noise, *events[place:]], TOOLS).decision
    assert isinstance(rejected(noise), StreamCut)


def test_a_valid_first_call_beside_a_malformed_second_releases_nothing():
    first = Call("read_file", '{"path": "a.py"}', "call_a")
    bad = {
        "strict_json": ["", "{", '{"path": "a"}}', '{"path": NaN}', '{"path": 1, "path": 2}', "x"],
        "object": ["[]", "null", '"{}"', "1", "true"],
        "schema": ["{}", '{"path": 1}', '{"path": "a", "x": "b"}', '{"path": null}'],
    }
    for check, texts in bad.items():
        for text in texts:
            second = Call("read_file", text, "call_b")
            for items in ((first, second), (second, first)):
                assert rejected(tell(Story(items)), TOOLS).check == check
    unknown = Story((first, Call("delete", "{}", "call_b")))
    assert rejected(tell(unknown), TOOLS).check == "exposed"


def test_a_pair_of_surrogates_cut_between_fragments_is_whole_again():
    story = Story((Say(("a😀b😀",)), Call("read_file", '{"path": "😀\\ud83d\\ude00"}', "call_a")))
    for piece in range(1, 6):
        decision = read(tell(story, Framing(piece=piece, units=True)), TOOLS).decision
        assert decision.text == "a😀b😀"
        assert decision.calls[0].arguments == {"path": "😀😀"}


@pytest.mark.parametrize("half", [chr(0xD83D), chr(0xDE00), chr(0xDE00) + chr(0xD83D)])
def test_a_lone_surrogate_is_released_nowhere(half):
    assert rejected(tell(Story((Say((f"a{half}",)),)))).check == "texts_equal"
    assert rejected(tell(Story((Say((half,), refusal=True),)))).check == "texts_equal"
    for text in (f'{{"a": "{half}"}}', f'{{"{half}": 1}}'):
        assert rejected(tell(Story((Call("t", text, "c"),)))).check == "strict_json"
    assert rejected(tell(Story((Call(f"t{half}", "{}", "c"),)))).check == "call_ids"
    assert rejected(tell(Story((Call("t", "{}", f"c{half}"),)))).check == "call_ids"
    assert rejected(tell(Story((), response_id=f"r{half}"))).check == "opened"


framings = st.builds(
    Framing,
    piece=st.integers(1, 40),
    units=st.booleans(),
    whole=st.sampled_from(["deltas", "added", "done", "item"]),
    interleaved=st.booleans(),
    numbered=st.booleans(),
    extras=st.booleans(),
)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(json_objects, max_size=3), st.text(st.characters(codec="utf-8")), framings)
def test_any_object_survives_its_way_through_a_stream_exactly(objects, text, framing):
    calls = [Call("t", dumps(value), f"call_{n}") for n, value in enumerate(objects)]
    broken = any(_has_surrogate(dumps(value)) for value in objects)
    events = tell(Story((Say((text,)), *calls)), framing)
    if broken:
        rejected(events)
        return
    decision = read(events).decision
    assert decision.text == text
    assert [dumps(call.arguments) for call in decision.calls] == [dumps(v) for v in objects]
    assert [plain(call.arguments) for call in decision.calls] == objects


def _has_surrogate(text):
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def test_renumbering_a_stream_changes_nothing():
    events = renumbered(unnumbered(tell(THREE_CALLS)))
    assert events == tell(THREE_CALLS)
