"""A frame: one step as text and as HTML, complete, stable, short, and safe to look at."""

import dataclasses
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from streams import (
    BARE,
    ONE_CALL,
    TEXT_THEN_CALL,
    THREE_CALLS,
    TOOLS,
    Call,
    Framing,
    Say,
    Story,
    recorded,
    tell,
)
from test_trace import STREAMS

from agentlib.gate import CHECKS
from agentlib.jsonvalues import one_line
from agentlib.stepper.frame import GLYPHS, MAX_SHOWN_BUFFERS
from agentlib.stepper.replay import Replay


def frames(events, **options):
    player = Replay(recorded(events), TOOLS, **options)
    return [player.seek(k) for k in range(player.last + 1)]


class Page(HTMLParser):
    """Collects the tags, attributes and text of a fragment, as a browser would see them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.words, self.open = set(), set(), [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return "".join(self.words)


SAFE_TAGS = {"div", "strong", "code", "br", "em", "ul", "li", "mark"}


@pytest.mark.parametrize("events", STREAMS.values(), ids=STREAMS)
def test_every_step_has_a_text_and_a_page_that_are_printable_and_closed(events):
    for frame in frames(events):
        lines = frame.text.splitlines()
        assert [one_line(line) for line in lines] == lines
        assert frame.text == repr(frame)
        assert frame.text.encode()
        page = Page(frame._repr_html_())
        assert page.tags <= SAFE_TAGS
        assert page.attributes <= {"style", "role"}
        for said in (one_line(frame.label), one_line(frame.gate.headline), one_line(frame.change)):
            assert said in page.text
            assert said in frame.text
        assert len(lines) < 40


def test_the_text_is_the_whole_frame():
    (frame,) = [f for f in frames(tell(TEXT_THEN_CALL, Framing(piece=6))) if f.index == 20]
    assert frame.text == (
        "stream · event 20 of 23 · arguments.delta\n"
        "  change   arguments of count (call_c): 3 characters more\n"
        "  text     I look at it first.    (draft, not committed)\n"
        "  text     Then: ñ, 漢, 😀.   (draft, not committed)\n"
        "  pending  count fc_1 call_c · 9 of 16,000 characters\n"
        '           {"to": 3}\n'
        "  gate     CLOSED: waiting for response.completed\n"
        "           ✓ response opened once, and first\n"
        "           ✓ every event follows the rules\n"
        "           ✓ within the limits\n"
        "           · 12 checks waiting\n"
        "  released 0 calls · executed 0 tools · a hasty adapter would have executed 0 tools"
    )


def test_text_is_a_draft_until_it_is_released():
    *drafts, last = frames(tell(TEXT_THEN_CALL))
    for frame in drafts:
        assert "(released)" not in frame.text
        assert (frame.verdict, frame.released) == ("closed", 0)
        assert frame.text.count("draft, not committed") == len(
            [shown for shown in frame.buffers if shown.buffer.kind == "text"]
        )
    assert last.text.count("(released)") == 2
    assert (last.verdict, last.released) == ("released", 1)
    assert last.draft == "I look at it first. Then: ñ, 漢, 😀."
    rejected = frames(tell(TEXT_THEN_CALL)[:-1])[-1]
    assert rejected.text.count("draft, not committed") == 2
    assert "gate     DISCARDED: the stream ended before its terminal event" in rejected.text


def test_done_is_progress_only_and_the_hasty_one_has_acted():
    done = next(f for f in frames(tell(ONE_CALL)) if f.label == "arguments.done")
    assert "done: progress only, the response is not complete" in done.change
    assert "done, progress only" in done.text
    assert (done.verdict, done.released, done.hasty) == ("closed", 0, 1)
    assert done.text.endswith("a hasty adapter would have executed 1 tool")


def test_the_done_of_an_item_is_told_apart_from_that_of_its_arguments():
    dones = [f.change for f in frames(tell(ONE_CALL)) if ".done" in f.label]
    assert [change.partition(" ")[0] for change in dones] == ["arguments", "item"]
    assert all("done: progress only, the response is not complete" in change for change in dones)


def test_a_frame_tells_the_pending_arguments_by_call_id():
    steps = frames(tell(THREE_CALLS, Framing(interleaved=True)))
    assert list(steps[-1].pending) == ["call_a", "call_b", "call_c"]
    for before, after in pairwise(steps):
        for call_id, text in before.pending.items():
            assert after.pending[call_id].startswith(text)
    assert steps[-1].pending["call_c"] == "{}"


def test_every_check_is_named_at_the_end():
    last = frames(tell(TEXT_THEN_CALL))[-1]
    assert all(f"✓ {check.title}" in last.text for check in CHECKS)
    silent = frames(tell(ONE_CALL))[-1].text
    assert f"{GLYPHS['not_applicable']} final text = streamed text: " in silent
    bad = frames(tell(Story((Call("count", '{"to": true}', "c"),))))[-1]
    assert "✗ arguments match the schema: " in bad.text
    player = Replay(recorded(tell(ONE_CALL)))
    unchecked = f"{GLYPHS['not_checked']} arguments match the schema: not checked: no catalog"
    assert unchecked in player.run().text


def test_the_newest_part_is_marked():
    events = tell(ONE_CALL, Framing(piece=9))
    marked = [f._repr_html_() for f in frames(events) if f.label == "arguments.delta"]
    assert "<mark>{&quot;path&quot;: </mark>" in marked[0]
    assert "{&quot;path&quot;: <mark>&quot;src/app" in marked[1]


def test_a_frame_cannot_be_changed():
    frame = frames(tell(ONE_CALL))[3]
    for name in ("trace", "index"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(frame, name, 1)


IMAGE = "<img src=x onerror=alert(1)>"
ATTACKS = {
    "image": IMAGE,
    "script": "<script>alert(1)</script></div></body>",
    "link": '<a href="javascript:alert(1)">x</a>',
    "attribute": "\" onmouseover=alert(1) x='",
    "entity": "&lt;b&gt; &#60;b&#62;",
    "comment": "--><!--",
    "screen control": "\x1b[2J\x1b[1;31m\x9b2J\x07\r",
    "turned around": "\u202etxt.exe\u2066",
    "invisible": "\u200b\ufeff\U000e0041\x00",
    "line of its own": "x\n  gate     RELEASED: 9 calls released\n",
    "markdown": "**bold** [x](javascript:alert(1)) `code` $$x$$",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_what_the_stream_says_is_only_ever_shown(attack):
    story = Story(
        (Say((attack,)), Say((attack,), refusal=True), Call(attack, f'{{"{attack}', attack)), attack
    )
    events = tell(story, Framing(piece=100, numbered=False))
    for event in events:
        for holder in (event, event.get("item") or {}):
            for key in ("item_id", "id"):
                if key in holder:
                    holder[key] += attack
    kind = {"type": f"response.{attack}", "item": {"name": attack}}
    for stream in (events, [*events[:-1], kind], [kind, *events]):
        for frame in frames(stream):
            assert "\n  gate     RELEASED" not in frame.text
            lines = frame.text.splitlines()
            assert [one_line(line) for line in lines] == lines
            page = Page(frame._repr_html_())
            assert page.tags <= SAFE_TAGS
            assert page.attributes <= {"style", "role"}
            for letter in "\x1b\x9b\x07\x00\u202e\u200b\U000e0041":
                assert letter not in page.text


def test_nothing_makes_a_frame_long():
    texts = Story(tuple(Say((f"text {n}" * 300,)) for n in range(3)))
    calls = [Call("n" * 5000, "[" * 9000, f"call_{n}" * 900) for n in range(8)]
    many = Story(tuple(Say((f"part {n}",)) for n in range(300)))
    for story in (texts, Story(tuple(calls), "r" * 9000), many):
        events = tell(story, Framing(piece=100_000))
        for frame in frames(events)[:: max(1, len(events) // 7)] + frames(events)[-1:]:
            assert len(frame.text) < 16_000
            assert len(frame._repr_html_()) < 40_000
    last = frames(tell(many, BARE))[-1]
    assert f"{300 - MAX_SHOWN_BUFFERS} buffers before, not shown" in last.text
    assert '"' not in last.draft
    assert last.draft.startswith("part 0part 1")


def test_of_a_long_buffer_the_newest_part_is_shown():
    text = "".join(f"{n:05}" for n in range(1000))
    last = frames(tell(Story((Say((text,)),)), Framing(piece=5000)))[-1]
    assert "… 4,600 before … " in last.text
    assert "00999" in last.text
    assert "00001" not in last.text
