"""Edits of a capture: each does what its name says, is undone by leaving it out, and is code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlib.errors import AgentlibError
from agentlib.fixtures import capture, capture_names
from agentlib.recordings.capture import Capture
from agentlib.recordings.edits import REASONS, Edit, EditError

NAMES = ("success_2_edit", "chat_edit", "messages_edit", "interleaved", "disconnect")
EDITS = st.one_of(
    st.builds(lambda n: ("cut", (n,)), st.integers(0, 18)),
    st.builds(
        lambda name, n: (name, (n,)),
        st.sampled_from(("drop", "double", "swap")),
        st.integers(1, 18),
    ),
    st.builds(lambda n, text: ("edit", (n, text)), st.integers(1, 18), st.text(max_size=8)),
    st.builds(lambda reason: ("stop", (reason,)), st.sampled_from(sum(REASONS.values(), ()))),
    st.just(("replace", ("path", "PATH", None))),
)


@pytest.fixture
def good():
    return capture("success_2_edit")


def raws(stream, response=1):
    return [event.raw for event in stream.responses[response - 1].events]


def made(stream, steps):
    """Make those of the edits that can be made."""
    for name, arguments in steps:
        try:
            stream = stream.edited(Edit(name, arguments))
        except EditError:
            continue
    return stream


@given(steps=st.lists(EDITS, max_size=6))
def test_edits_made_at_once_are_edits_made_one_after_the_other(steps):
    one_by_one = made(capture("success_2_edit"), steps)
    assert capture("success_2_edit").edited(*one_by_one.edits) == one_by_one


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("digits", [10, 4_000, 5_000])
@pytest.mark.parametrize("name", ["cut", "drop", "double", "swap", "edit", "replace", "response"])
def test_a_number_too_long_to_be_written_is_refused_as_any_other(good, name, digits, sign):
    number = sign * 10**digits
    arguments = {"edit": (number, "a"), "replace": ("a", "b", number), "response": (1,)}
    edit = Edit("drop" if name == "response" else name, arguments.get(name, (number,)))
    with pytest.raises(EditError, match="expected at most 1,000,000,000 as"):
        good.edited(edit._replace(response=number) if name == "response" else edit)


@pytest.mark.parametrize("response", [-1, 0, 2])
def test_a_response_that_is_not_there_is_not_edited(good, response):
    with pytest.raises(EditError, match=f"has responses 1 to 1, no response {response}"):
        good.drop(1, response=response)


# What each does


def test_events_are_cut_dropped_doubled_and_swapped(good):
    before = raws(good)
    assert raws(good.cut(after=7)) == before[:7]
    assert raws(good.cut(after=0)) == []
    assert raws(good.drop(3)) == before[:2] + before[3:]
    assert raws(good.double(3)) == [*before[:3], *before[2:]]
    assert raws(good.swap(3)) == [*before[:2], before[3], before[2], *before[4:]]
    assert raws(good) == before


def test_events_are_counted_anew_for_the_next_edit(good):
    before = raws(good)
    assert raws(good.drop(3).drop(3)) == before[:2] + before[4:]
    assert [event.number for event in good.drop(3).events] == list(range(1, 18))


@pytest.mark.parametrize(
    ("name", "event", "path"),
    [
        ("success_2_edit", 6, ("delta",)),
        ("success_2_edit", 8, ("text",)),
        ("success_2_edit", 9, ("part", "text")),
        ("success_2_edit", 10, ("item", "content", 0, "text")),
        ("success_2_edit", 13, ("delta",)),
        ("success_2_edit", 16, ("arguments",)),
        ("success_2_edit", 17, ("item", "arguments")),
        ("chat_edit", 2, ("choices", 0, "delta", "content")),
        ("chat_edit", 7, ("choices", 0, "delta", "tool_calls", 0, "function", "arguments")),
        ("messages_edit", 3, ("delta", "text")),
        ("messages_edit", 10, ("delta", "partial_json")),
    ],
)
def test_a_fragment_is_edited_in_its_apis_own_place(name, event, path):
    stream = capture(name).edit(event, 'x"\n\u202e')
    value = stream.events[event - 1].data
    for step in path:
        value = value[step]
    assert value == 'x"\n\u202e'
    others = [raw for number, raw in enumerate(raws(stream), 1) if number != event]
    assert others == [raw for number, raw in enumerate(raws(capture(name)), 1) if number != event]


@pytest.mark.parametrize(
    ("name", "reason", "event"),
    [
        ("success_2_edit", "incomplete", 18),
        ("success_2_edit", "failed", 18),
        ("incomplete", "completed", 15),
        ("chat_edit", "length", 10),
        ("messages_edit", "max_tokens", 14),
    ],
)
def test_the_stop_reason_is_changed_where_the_api_says_it(name, reason, event):
    stream = capture(name).stop(reason)
    assert f'"{reason}"' in stream.events[event - 1].raw
    changed = [
        n
        for n, (a, b) in enumerate(zip(raws(stream), raws(capture(name)), strict=True), 1)
        if a != b
    ]
    assert changed == [event]


def test_a_response_that_stops_otherwise_says_so_in_its_body_and_its_kind(good):
    last = good.stop("incomplete").events[-1].data
    assert last["type"] == "response.incomplete"
    assert last["response"]["status"] == "incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert good.stop("failed").stop("completed").events[-1].data == good.events[-1].data


def test_the_response_that_is_meant_is_edited_and_no_other():
    both = capture("two_responses")
    stream = both.drop(2, response=2)
    assert raws(stream) == raws(both)
    assert raws(stream, 2) == [raws(both, 2)[0], *raws(both, 2)[2:]]
    assert repr(stream) == "capture('two_responses').drop(2, response=2)"


def test_a_cut_takes_away_what_came_after_and_nothing_else_does():
    chat = capture("chat_edit")
    assert chat.drop(2).responses[0].done_marker
    assert not chat.cut(after=9).responses[0].done_marker
    malformed = capture("malformed")
    assert malformed.drop(1).responses[0].fault == malformed.responses[0].fault
    assert malformed.cut(after=1).responses[0].fault is None


# What cannot be done


@pytest.mark.parametrize("event", [0, 19, -1, 10**9])
def test_an_event_that_is_not_there_is_said_not_to_be(good, event):
    for edit in (good.drop, good.double, good.swap, lambda n: good.edit(n, "x")):
        with pytest.raises(EditError, match=f"success_2_edit has events 1 to 18, no event {event}"):
            edit(event)
    if event not in range(19):
        with pytest.raises(EditError, match=f"cannot cut after {event}"):
            good.cut(after=event)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda c: c.swap(18), "no event 19"),
        (lambda c: c.drop("3"), 'expected a whole number as event, saw "3"'),
        (lambda c: c.drop(True), "expected a whole number as event"),
        (lambda c: c.cut(after=2.0), "expected a whole number as after"),
        (lambda c: c.cut(after=0).drop(1), "has no events, no event 1"),
        (lambda c: c.drop(1, response=2), "has responses 1 to 1, no response 2"),
        (lambda c: c.edit(1, "x"), "event 1 of success_2_edit carries no text fragment"),
        (lambda c: c.edit(5, 7), "expected the new fragment as text"),
        (lambda c: c.stop("tired"), "expected as reason one of completed, incomplete, failed"),
        (lambda c: c.cut(after=9).stop("failed"), "says why the response stopped"),
        (lambda c: c.replace("nowhere", "x"), '"nowhere" does not stand in any event'),
        (lambda c: c.replace("", "x"), "does not stand in any event"),
        (lambda c: c.replace("a + b", "a * b", event=1), "does not stand in event 1"),
        (lambda c: c.replace("I will repair it.", '"', event=18), "would be no JSON any more"),
    ],
)
def test_what_cannot_be_edited_is_said_with_what_there_is(good, edit, said):
    with pytest.raises(EditError, match=said) as caught:
        edit(good)
    assert isinstance(caught.value, AgentlibError)


def test_a_capture_of_no_known_api_has_no_fragments_and_no_reasons():
    stream = Capture.from_events([{"type": "hello", "delta": "x"}], "odd")
    with pytest.raises(EditError, match="the API is not known"):
        stream.stop("stop")
    with pytest.raises(EditError, match="carries no text fragment"):
        stream.edit(1, "y")
    assert stream.double(1).responses[0].events[1].data == {"type": "hello", "delta": "x"}


# History, code and undo


def test_the_name_stays_and_the_text_form_tells_the_history(good):
    stream = good.cut(after=7).drop(3).edit(4, "x" * 900)
    assert stream.name == "success_2_edit"
    assert repr(stream).startswith("capture('success_2_edit').cut(after=7).drop(3).edit(4, 'xxx")
    assert len(repr(stream)) < 140
    assert repr(good) == "Capture('success_2_edit', 'responses', events: 18)"


@given(st.sampled_from(NAMES), st.lists(EDITS, max_size=5))
def test_the_code_makes_the_same_capture_and_leaving_out_the_last_edit_undoes_it(name, steps):
    original = capture(name)
    stream = made(original, steps)
    code = "capture" + "".join(edit.code for edit in stream.edits)
    assert eval(code, {"capture": original}) == stream

    undone = original
    for edit in stream.edits[:-1]:
        undone = undone.edited(edit)
    if stream.edits:
        assert undone.edited(stream.edits[-1]) == stream
    assert made(original, []) is original


@given(st.sampled_from(NAMES), st.lists(EDITS, max_size=4))
def test_what_is_saved_is_read_as_the_same_events(name, steps):
    stream = made(capture(name), steps)
    again = Capture.from_bytes(stream.source, stream.name, stream.provider)
    assert [e.data for r in again.responses for e in r.events] == [
        e.data for r in stream.responses for e in r.events
    ]
    assert again.comments == stream.comments


@pytest.mark.parametrize("name", capture_names())
def test_every_stream_can_be_edited_at_every_event(name):
    stream = capture(name)
    for event in stream.events:
        assert len(stream.drop(event.number).events) == len(stream.events) - 1
        assert len(stream.double(event.number).events) == len(stream.events) + 1


def test_data_that_came_in_several_lines_is_written_as_one():
    source = b'event: hello\ndata: {"a":\ndata: 1}\n\ndata: {"type":"x"}\n\n'
    stream = Capture.from_bytes(source).drop(2)
    assert Capture.from_bytes(stream.source).events[0].data == {"type": "hello", "a": 1}
