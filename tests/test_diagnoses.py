"""Diagnoses: each has its stream and its place on the page, and a healthy stream has none."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from streams import STORIES, Framing, tell

from agentlib.commands import main
from agentlib.conversation import Catalog
from agentlib.inspection.diagnoses import DIAGNOSES, diagnose
from agentlib.inspection.page import page
from agentlib.providers.compat import FLAGS
from agentlib.providers.registry import PROVIDERS
from agentlib.recordings.capture import Capture
from agentlib.stepper.replay import Replay, captured_catalog
from workbook.exercises.catalogue import exercise

ROOT = Path(__file__).parents[1]
AUTHORED = sorted((ROOT / "fixtures" / "diagnoses").iterdir())
STREAMS = sorted((ROOT / "fixtures" / "streams").glob("*.sse"))
# What each stream of the book has; those that are not named are healthy.
OF_STREAMS = {
    "after_completed": ["sent-after-the-end"],
    "chat_no_call_id": ["call-without-id"],
    "gemini_goes_on": ["call-goes-on"],
    "disconnect": ["cut-stream"],
    "disconnect_mid_arguments": ["cut-stream"],
    "duplicate_key": ["duplicate-keys"],
    "error_event": ["error-in-the-stream"],
    "failed": ["failed-midway"],
    "hostile": ["unknown-tool"],
    "incomplete": ["stopped-short"],
    "malformed": ["cut-arguments"],
    "native_computer": ["item-for-the-host"],
    "status_disagrees": ["stopped-short"],
    "terminal_differs": ["corrected-by-done"],
    "two_responses": ["glued-responses"],
    "unknown_tool": ["unknown-tool"],
    "whole_at_done": ["no-deltas"],
}
# Only the tools of the request show that what this flag reads is whole.
CATALOG = Catalog.from_json(json.loads((ROOT / "fixtures" / "tools.json").read_text("utf-8")))
NEEDS_TOOLS = {"unended-call": CATALOG}
# What is released all the same, and costs something.
RELEASED = {
    *("sent-after-the-end", "no-deltas", "usage-missing", "cumulative-usage"),
    *("cumulative-deltas", "index-always-zero", "doubled-deltas", "call-in-text"),
}
# How a stream is read that shows its diagnosis in no other way.
READ = {"not-portable": {"native": False}}


def names(capture, tools=None, **options):
    return [
        [
            found.name
            for found in diagnose(
                capture.provider,
                response,
                tools or captured_catalog(capture, response.number),
                **options,
            )
        ]
        for response in capture.responses
    ]


@pytest.mark.parametrize("path", AUTHORED, ids=lambda path: path.stem)
def test_each_authored_stream_has_the_one_diagnosis_that_it_is_named_for(path):
    first_line = path.read_text(encoding="utf-8").splitlines()[0]
    assert "authored fixture — " in first_line
    capture = Capture.load(path)
    options = READ.get(path.stem, {})
    assert names(capture, **options) == [[path.stem]]
    released = Replay(capture, **options).decision is not None
    assert released is (path.stem in RELEASED)


def test_each_diagnosis_has_an_authored_stream():
    assert {path.stem for path in AUTHORED} == set(DIAGNOSES)
    assert all(path.suffix == ".sse" for path in AUTHORED)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_of_the_book_has_the_diagnosis_that_it_should_and_a_healthy_one_none(path):
    first, *others = names(Capture.load(path))
    assert first == OF_STREAMS.get(path.stem, [])
    assert others == [[] for _ in others]


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_a_healthy_story_has_none_in_any_framing(story):
    for framing in (Framing(piece=1), Framing(piece=7), Framing(piece=10_000)):
        assert names(Capture.from_events(tell(story, framing))) == [[]]


@pytest.mark.parametrize("flag", FLAGS)
def test_what_each_flag_tolerates_is_a_diagnosis_that_names_it(flag):
    (diagnosis,) = [each for each in DIAGNOSES.values() if each.flag == flag]
    assert f"--compat {flag}" in diagnosis.to_do
    capture = Capture.load(ROOT / "fixtures" / "diagnoses" / f"{diagnosis.name}.sse")
    tools = NEEDS_TOOLS.get(flag)
    assert Replay(capture, tools).decision is None
    assert Replay(capture, tools, compat=[flag]).decision is not None
    assert names(capture, tools, compat=[flag]) == [[]]
    if tools is not None:
        assert Replay(capture, compat=[flag]).decision is None


def test_the_page_is_what_the_table_says_and_has_each_anchor():
    text = (ROOT / "notebooks" / "diagnoses.md").read_text(encoding="utf-8")
    assert text == page(), "write it again: agentlib.inspection.page.page()"
    headings = re.findall(r"(?m)^## (.+)$", text)
    assert headings == list(DIAGNOSES)
    for diagnosis in DIAGNOSES.values():
        assert diagnosis.anchor == f"notebooks/diagnoses.md#{diagnosis.name}"
        assert re.fullmatch(r"[a-z]+(?:-[a-z]+)+", diagnosis.name)
    for target in re.findall(r"\]\((\.\./[^)]+)\)", text):
        assert (ROOT / "notebooks" / target).is_file()


def test_a_rule_that_is_broken_without_a_name_is_told_all_the_same():
    for path in [*AUTHORED, *STREAMS]:
        capture = Capture.load(path)
        for number, found in enumerate(names(capture), 1):
            rejected = Replay(capture, response=number).failure is not None
            assert found or not rejected


def test_the_command_says_what_it_found_and_what_to_do(capsys):
    path = ROOT / "fixtures" / "recordings" / "curl.sse"
    assert main(["inspect", str(path)]) == 1
    (line,) = [row for row in capsys.readouterr().out.splitlines() if "diagnosis" in row]
    assert line == (
        "  diagnosis rotating-item-ids: item 0 has 5 different IDs → read it with "
        "--compat rotating-ids"
    )
    assert main(["inspect", "--json", str(path)]) == 1
    row = json.loads(capsys.readouterr().out)
    (told,) = row["diagnoses"]
    assert told["name"] == "rotating-item-ids"
    assert told["compat"] == "rotating-ids"
    assert told["page"] == "notebooks/diagnoses.md#rotating-item-ids"
    assert any(note.startswith("2 secrets redacted") for note in row["notes"])
    assert main(["inspect", "--compat", "rotating-ids", str(path)]) == 0
    assert "diagnosis" not in capsys.readouterr().out


CAPTURES = [Capture.load(path) for path in [*AUTHORED, *STREAMS]]


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_what_is_released_is_asked_for_all_that_it_can_have(data):
    """However events are lost, doubled or moved: no row that is not asked would see anything."""
    capture = data.draw(st.sampled_from(CAPTURES))
    events = [event.data for response in capture.responses for event in response.events]
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(events)))
        moved = data.draw(st.sampled_from([[], events[:1], events[-1:], events[place : place + 1]]))
        events = [*events[:place], *moved, *events[place + data.draw(st.integers(0, 1)) :]]
    changed = Capture.from_events(events, provider=capture.provider)
    compat = data.draw(st.sampled_from([[], *([flag] for flag in FLAGS), [*FLAGS]]))
    asked = names(changed, compat=compat)
    with pytest.MonkeyPatch.context() as patch:
        rows = [row._replace(released=True) for row in DIAGNOSES.values()]
        patch.setattr("agentlib.inspection.diagnoses._TABLE", rows)
        assert names(changed, compat=compat) == asked


FIELDS = (
    *("type", "delta", "index", "id", "item", "item_id", "output_index", "output", "response"),
    *("choices", "tool_calls", "function", "arguments", "name", "usage", "error", "message"),
    *("content", "finish_reason"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "a", "call_1", "stop"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5)
    ),
    max_leaves=12,
)
KINDS = st.sampled_from(
    [
        *("response.created", "response.output_item.added", "response.output_item.done"),
        *("response.output_text.delta", "response.function_call_arguments.done"),
        *("response.completed", "response.incomplete", "message_start", "content_block_start"),
        *("content_block_delta", "message_delta", "message_stop", "error", "ping"),
    ]
)
EVENTS = st.dictionaries(
    st.sampled_from(["choices", "response", "item", "delta", "message", "content_block", "usage"]),
    VALUES,
    max_size=4,
)


@settings(deadline=None, max_examples=examples(300))
@given(
    st.lists(st.tuples(KINDS, EVENTS), max_size=6),
    st.sampled_from([*PROVIDERS, "unknown"]),
    st.integers(0, 1),
)
def test_no_events_are_too_strange_to_be_diagnosed(pairs, provider, chat):
    events = [event if chat else {"type": kind, **event} for kind, event in pairs]
    capture = Capture.from_events(events, provider=provider)
    for response in capture.responses:
        found = diagnose(provider, response)
        assert all(row.name in DIAGNOSES and row.text for row in found)
        assert len({row.name for row in found}) == len(found)


# ------------------------------------------------------------------------------- the exercise


def rotates_in_sets(events):
    ids = {}
    for event in events:
        if "output_index" in event:
            seen = ids.setdefault(event["output_index"], set())
            seen.add(event["item_id"] if "item_id" in event else event["item"]["id"])
    return any(len(seen) > 1 for seen in ids.values())


def rotates_at_first_change(events):
    first = {}
    for event in events:
        index = event.get("output_index")
        own = event.get("item_id") or event.get("item", {}).get("id")
        if index is not None and first.setdefault(index, own) != own:
            return index + 1
    return None


def rotates_in_pairs(events):
    events = [event for event in events if "output_index" in event]
    pairs = {(e["output_index"], e.get("item_id", e.get("item", {}).get("id"))) for e in events}
    return len(pairs) > len({index for index, _ in pairs})


def wrong_by_all_ids(events):
    return len({event.get("item_id") for event in events} - {None}) > 1


def wrong_by_counts(events):
    events = [event for event in events if "output_index" in event]
    ids = {event.get("item_id", event.get("item", {}).get("id")) for event in events}
    return len(ids) != len({event["output_index"] for event in events})


def wrong_by_item_ids(events):
    ids = {}
    for event in events:
        if "item_id" in event:
            ids.setdefault(event["output_index"], set()).add(event["item_id"])
    return any(len(seen) > 1 for seen in ids.values())


def wrong_by_items(events):
    ids = {}
    for event in events:
        if "item" in event:
            ids.setdefault(event["output_index"], set()).add(event["item"]["id"])
    return any(len(seen) > 1 for seen in ids.values())


def wrong_by_first_item(events):
    return rotates_in_sets([event for event in events if event.get("output_index") == 0])


def wrong_by_every_event_being_of_an_item(events):
    return len({event["output_index"] for event in events}) > 1


def wrong_by_never(_events):
    return False


@pytest.mark.parametrize("answer", [rotates_in_sets, rotates_at_first_change, rotates_in_pairs])
def test_a_right_detector_is_right_however_it_is_written(answer):
    verdict = exercise("15").check(answer)
    assert verdict.passed, verdict.text


@pytest.mark.parametrize(
    "answer",
    [
        wrong_by_all_ids,
        wrong_by_counts,
        wrong_by_item_ids,
        wrong_by_items,
        wrong_by_first_item,
        wrong_by_never,
    ],
)
def test_a_wrong_detector_is_caught_and_told_where(answer):
    verdict = exercise("15").check(answer)
    assert not verdict.passed
    assert verdict.where
    assert verdict.why.startswith(("One item, at one", "Each item keeps"))
    assert verdict.frame is not None


def test_an_event_of_no_item_is_named_where_it_is_what_raised():
    verdict = exercise("15").check(wrong_by_every_event_being_of_an_item)
    assert verdict.why == "Some events are of no item: they have no `output_index`."
