"""The contract kit: it finds nothing in the project's own adapters, and every fault in broken ones.

The streams here are made by the kit itself; that the kit is right is shown from two sides. The
reference reader of each dialect reads every intact encoding as its script, and each broken adapter,
which is right but for one fault, is caught.
"""

import json
import os
import signal
import subprocess
import sys
import time
from functools import cache
from itertools import product
from random import Random

import pytest
from adapters import DEAD, LEAKING, TallyTranslator

from agentlib import ResponseFailure, failures, gate
from agentlib.commands import main
from agentlib.conformance import fuzz
from agentlib.conformance.contract import Trials, check, encodings, random_encoding, smallest
from agentlib.conformance.dialects.reference import difference, valid_arguments
from agentlib.conformance.dialects.registry import DIALECTS
from agentlib.conformance.mutations import KINDS, EncodedScript, Mutation, every_mutation, mixture
from agentlib.conformance.script import (
    INVALID,
    ONE_CALL,
    REASONED,
    SCRIPTS,
    STOPS,
    TEXT_AND_CALL,
    THREE_CALLS,
    TWO_ALIKE,
    catalog,
    invent,
)
from agentlib.conformance.trials import ReaderAdapter, judge, maker, own, run
from agentlib.inspection.report import inspect_capture
from agentlib.providers.compat import flags_for
from agentlib.providers.registry import PROVIDERS
from agentlib.recordings.capture import Capture
from agentlib.stepper.replay import Replay

OWN = tuple(PROVIDERS)
CATALOG = catalog()


def encoded(dialect, script, framing=None):
    framing = framing or dialect.framings[0]
    return EncodedScript(dialect, script, framing, dialect.encode(script, framing))


def every_encoding(dialect, scripts=SCRIPTS):
    for script, framing in product(scripts, dialect.framings):
        if dialect.expresses(script):
            yield encoded(dialect, script, framing)


# ----------------------------------------------------------------------- the project's own adapters


@cache
def trials_of_own(name):
    """The report on the project's own adapter, and the seconds of processor time it took."""
    begin = time.process_time()
    return check(own(name), DIALECTS[name], mixtures=400), time.process_time() - begin


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", OWN)
def test_an_own_adapter_keeps_the_contract(name):
    report, _ = trials_of_own(name)
    assert report.leaks == [], f"\n{report!r}"
    assert report.dead == [], f"\n{report!r}"
    assert report.passed
    assert all(report.count("refused", kind) for kind in KINDS)


@pytest.mark.exhaustive
def test_twenty_thousand_hostile_streams_are_tried_and_counted(capsys):
    found = {name: trials_of_own(name) for name in OWN}
    tried = sum(report.tried for report, _ in found.values())
    seconds = sum(took for _, took in found.values())
    lines = [f"{tried:,} hostile streams tried in {seconds:.1f} s of processor time"]
    for name, (report, _) in found.items():
        unseen = ", ".join(f"{what} {n:,}" for what, n in report.unseen.items()) or "nothing"
        lines.append(f"  {name}: {report.tried:,}, leaked {report.leaked}; unseen: {unseen}")
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *lines, ""]))
    assert tried >= 20_000


def test_responses_restates_everything_so_that_no_harm_goes_unseen():
    assert trials_of_own("responses")[0].unseen == {}


@pytest.mark.parametrize("name", ["chat", "messages", "gemini"])
def test_what_cannot_be_seen_is_counted_and_shown_with_its_reason(name):
    report, _ = trials_of_own(name)
    text = " ".join(repr(report).split())
    for row in DIALECTS[name].unseen:
        assert report.unseen[row.what] > 0, row.what
        assert f"{report.unseen[row.what]:,} {row.what}: {row.why}" in text


# Which encodings show, when they are mutated, everything that each dialect's law lists as unseen.
WITNESSES = {
    "responses": [],
    "chat": [
        (THREE_CALLS, "pieces of 1, empty"),
        (THREE_CALLS, "whole, usage on finish"),
        (THREE_CALLS, "interleaved, all sent in every chunk"),
        (THREE_CALLS, "pieces of 4, first"),
        (ONE_CALL, "pieces of 10000, first"),
        (ONE_CALL, "opening null"),
        (ONE_CALL.stopped("length"), "plain"),
        (TWO_ALIKE, "pieces of 1, empty, interleaved"),
    ],
    "messages": [
        (THREE_CALLS, "pieces of 1, first empty"),
        (TWO_ALIKE, "pieces of 1, first empty, interleaved"),
        (TEXT_AND_CALL, "interleaved, no empty fragment"),
        (THREE_CALLS, "text in the block's start"),
        (ONE_CALL.stopped("length"), "plain"),
    ],
    "gemini": [
        (THREE_CALLS, "plain"),
        (TWO_ALIKE, "plain"),
        (THREE_CALLS, "in pieces"),
        (TEXT_AND_CALL, "arguments in pieces of 1, end empty"),
        (ONE_CALL, "arguments in pieces of 1, end empty"),
        (REASONED, "plain"),
        (THREE_CALLS, "finish reason beside the last part"),
        (ONE_CALL.stopped("length"), "plain"),
    ],
    "tally": [
        (TWO_ALIKE, "pieces of 1, interleaved"),
        (THREE_CALLS, "interleaved"),
        (ONE_CALL.stopped("length"), "plain"),
    ],
}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", DIALECTS)
def test_each_row_of_what_cannot_be_seen_has_a_stream_that_shows_it(name):
    dialect = DIALECTS[name]
    framings = {framing.name: framing for framing in (*dialect.framings, *dialect.mutated)}
    shown = set()
    for script, framing in WITNESSES[name]:
        encoding = encoded(dialect, script, framings[framing])
        for mutation, mutated in every_mutation(encoding):
            reading = dialect.read([sent.event for sent in mutated])
            if reading is not None and (reading != script.content or script.stop != "complete"):
                shown.add((difference(script, reading), mutation.kind, mutation.place))
    rows = {
        (row.what, kind, place)
        for row in dialect.unseen
        for kind, places in row.mutations.items()
        for place in places
    }
    assert shown == rows


@pytest.mark.parametrize("name", OWN)
def test_an_own_adapter_refuses_by_a_named_failure_and_never_breaks(name):
    named = {
        kind.__name__
        for kind in vars(failures).values()
        if isinstance(kind, type) and issubclass(kind, ResponseFailure)
    }
    rng = Random(5)
    for _ in range(40):
        encoding = random_encoding(DIALECTS[name], rng)
        for _ in range(20):
            mutations, mutated = mixture(encoding, rng)
            outcome = run(own(name), CATALOG, [sent.event for sent in mutated])
            raised = outcome.refused.partition(":")[0]
            assert raised in named | {""}, (outcome.refused, mutations)


FLAGS = [(name, (flag,)) for name in OWN for flag in flags_for(name)]
FLAGS += [(name, flags_for(name)) for name in OWN if flags_for(name)]


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize(("name", "flags"), FLAGS, ids=str)
def test_no_tolerance_releases_a_call_from_what_was_cut_failed_or_is_incomplete(name, flags):
    trials = Trials(own(name, flags), DIALECTS[name], strict=False)
    trials.mixtures(150, seed=2)
    for encoding in encodings(DIALECTS[name]):
        for mutation, mutated in every_mutation(encoding, fields=False, letters=False):
            if mutation.kind in ("cut", "stop") and encoding.script in (THREE_CALLS, TEXT_AND_CALL):
                trials._hostile(encoding, (mutation,), mutated)
    assert trials.report.leaks == [], f"\n{trials.report!r}"
    assert trials.report.tried > 150
    assert trials.report.count("right") > 0


def test_the_done_marker_stands_for_no_finish_reason_but_the_missing_one():
    chat, make = DIALECTS["chat"], own("chat", ["done-without-reason"], done=True)
    for script in (THREE_CALLS, TEXT_AND_CALL):
        for act, mutated in chat.stops(chat.encode(script, chat.framings[0])):
            events = [sent.event for sent in mutated]
            released = run(make, CATALOG, events).calls is not None
            missing = act in ("finish reason None", "finish reason ")
            assert released == (missing or chat.completes(events)), act


# ------------------------------------------------- what the kit found, each with its own small case


def mutated_outcome(name, script, change, framing=0):
    dialect = DIALECTS[name]
    events = encoded(dialect, script, dialect.mutated[framing]).events
    return run(own(name), CATALOG, change(events))


def test_a_lost_block_of_messages_is_seen_by_the_gap_in_the_indexes():
    outcome = mutated_outcome(
        "messages", THREE_CALLS, lambda events: [e for e in events if e.get("index") != 1]
    )
    assert outcome.calls is None
    assert "expected block 1 to start next, saw block 2" in outcome.refused


def test_blocks_of_messages_start_in_the_order_of_their_indexes():
    def exchanged(events):
        starts = [n for n, e in enumerate(events) if e["type"] == "content_block_start"]
        first, second = starts[1], starts[2]
        events[first], events[second] = events[second], events[first]
        return events

    outcome = mutated_outcome("messages", THREE_CALLS, exchanged, framing=1)
    assert outcome.calls is None
    assert "expected block 1 to start next" in outcome.refused


def test_texts_of_messages_keep_the_order_of_their_blocks():
    def later(events):
        first = next(n for n, e in enumerate(events) if e.get("delta", {}).get("text") == "I l")
        events[first], events[first + 1] = events[first + 1], events[first]
        return events

    outcome = mutated_outcome("messages", TEXT_AND_CALL, later, framing=1)
    assert outcome.text == "I look. ñ😀"


def test_a_call_of_chat_keeps_its_place_though_its_name_comes_late():
    def nameless(events):
        first = next(e for e in events if e["choices"][0]["delta"].get("tool_calls"))
        del first["choices"][0]["delta"]["tool_calls"][0]["function"]["name"]
        return events

    outcome = mutated_outcome("chat", THREE_CALLS, nameless, framing=1)
    assert outcome.calls is None
    assert "which came first" in outcome.refused


def test_without_indexes_the_final_output_keeps_the_order_in_which_items_were_added():
    def exchanged(events):
        output = events[-1]["response"]["output"]
        output[-1], output[-2] = output[-2], output[-1]
        return events

    outcome = mutated_outcome("responses", THREE_CALLS, exchanged, framing=2)
    assert outcome.calls is None
    assert "streamed order" in outcome.refused


# ------------------------------------------------------------------------------ the kit itself


NEEDED = (
    "completed",
    "response_id",
    "call_ids",
    "texts_equal",
    "calls_equal",
    "none_omitted",
    "none_invented",
    "exposed",
    "schema",
)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("name", NEEDED)
def test_without_any_one_check_of_the_gate_the_kit_finds_a_leak(name, monkeypatch):
    blind = [
        row._replace(run=lambda _: gate.PASS) if row.name == name else row for row in gate.CHECKS
    ]
    monkeypatch.setattr(gate, "CHECKS", tuple(blind))
    trials = Trials(own("responses"), DIALECTS["responses"])
    trials.intact([INVALID[0], INVALID[5]] if name in ("exposed", "schema") else ())
    encoding = encoded(DIALECTS["responses"], THREE_CALLS)
    for mutation, mutated in every_mutation(encoding, fields=False, letters=False):
        if not trials.report.leaks:
            trials._hostile(encoding, (mutation,), mutated)
    assert trials.report.leaks


def test_every_provider_has_a_dialect_and_each_framing_its_own_name():
    assert set(PROVIDERS) <= set(DIALECTS)
    for dialect in DIALECTS.values():
        names = [framing.name for framing in dialect.framings]
        assert len(names) == len(set(names))
        assert dialect.framings[0] == dialect.mutated[0]


@pytest.mark.parametrize("name", DIALECTS)
def test_the_referee_reads_every_unmutated_outcome_as_its_story(name):
    dialect = DIALECTS[name]
    for encoding in every_encoding(dialect):
        assert dialect.read(encoding.events) == encoding.script.content, encoding.framing
        assert dialect.completes(encoding.events)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_referee_reads_no_story_that_stopped(name):
    dialect = DIALECTS[name]
    for encoding in every_encoding(
        dialect, [s.stopped(stop) for s in SCRIPTS for stop in STOPS[1:]]
    ):
        assert dialect.read(encoding.events) is None, (encoding.script, encoding.framing)
        assert not dialect.completes(encoding.events)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_referee_reads_no_story_that_was_cut(name):
    dialect = DIALECTS[name]
    for encoding in every_encoding(dialect):
        for end in range(len(encoding.events)):
            # In Chat and Gemini the finish reason completes, and a usage may follow it.
            if name not in ("chat", "gemini") or not dialect.completes(encoding.events[:end]):
                assert dialect.read(encoding.events[:end]) is None, (encoding.framing, end)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_referee_reads_nothing_of_a_story_with_a_call_that_must_not_run(name):
    dialect = DIALECTS[name]
    for encoding in every_encoding(dialect, INVALID):
        assert dialect.read(encoding.events) is None, (encoding.script.name, encoding.framing)


@pytest.mark.parametrize("name", DIALECTS)
def test_invented_stories_are_told_and_read_as_they_are(name):
    rng = Random(3)
    dialect = DIALECTS[name]
    for _ in range(150):
        encoding = random_encoding(dialect, rng)
        complete = encoding.script.stop == "complete"
        assert dialect.read(encoding.events) == (encoding.script.content if complete else None)


def test_invented_calls_fit_their_tools():
    rng = Random(4)
    for _ in range(200):
        for call in invent(rng).calls:
            assert CATALOG.problem(call.name, json.loads(call.arguments)) is None
            assert valid_arguments(call.name, call.arguments)


@pytest.mark.parametrize("name", DIALECTS)
def test_harm_leaves_the_telling_that_it_is_done_to_as_it_was(name):
    encoding = encoded(DIALECTS[name], THREE_CALLS)
    before = json.dumps(encoding.events)
    rng = Random(1)
    kinds = {mutation.kind for mutation, _ in every_mutation(encoding)}
    kinds |= {"mixture" for _ in range(50) if mixture(encoding, rng)}
    assert kinds == set(KINDS) - {"script", "move"}
    assert json.dumps(encoding.events) == before


def test_a_trial_gives_every_adapter_a_copy_of_its_own():
    class Spoils(ReaderAdapter):
        def accept(self, event):
            calls = super().accept(event)
            event.clear()
            return calls

    encoding = encoded(DIALECTS["chat"], THREE_CALLS)
    for _ in range(2):
        outcome = run(lambda tools: Spoils("chat", tools), CATALOG, encoding.events)
        assert outcome.matches(THREE_CALLS.content)


def test_the_same_seed_tries_the_same_streams():
    def tried(seed):
        trials = Trials(own("chat"), DIALECTS["chat"])
        trials.mixtures(60, seed)
        return trials.report.counts, trials.report.unseen

    assert tried(1) == tried(1)
    assert tried(1) != tried(2)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_right_release_needs_a_story_that_completed(name):
    encoding = encoded(DIALECTS[name], THREE_CALLS)
    cut = next(n for n, s in enumerate(encoding.encoding) if s.place in ("stop reason", "terminal"))

    class Knows:
        def __init__(self, tools):
            pass

        def accept(self, _):
            return None

        def end(self):
            return THREE_CALLS.calls

    whole, early = encoding.events, encoding.events[:cut]
    assert judge(encoding, whole, run(Knows, CATALOG, whole))[0] == "right"
    assert judge(encoding, early, run(Knows, CATALOG, early))[0] == "leaked"


# ----------------------------------------------------------------------------- broken adapters


def trials_of(adapter):
    return Trials(maker(adapter), DIALECTS[getattr(adapter, "provider", "tally")])


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("name", LEAKING)
def test_a_broken_adapter_is_caught_with_the_smallest_stream(name):
    trials = trials_of(LEAKING[name])
    trials.intact([INVALID[0]] if "LeavesOut" in name else ())
    rounds = 0
    while not trials.report.leaks and rounds < 12:
        rounds += 1
        trials.mixtures(100, rounds)
    assert trials.report.leaked, LEAKING[name].__doc__
    assert not trials.report.passed
    leak = min(trials.report.leaks, key=lambda leak: len(leak.events))
    make, dialect = maker(LEAKING[name]), DIALECTS[leak.provider]
    encoding = EncodedScript(dialect, leak.script, dialect.framings[0], [])

    def released(events):
        outcome = run(make, CATALOG, events)
        leaked = judge(encoding, events, outcome)[0] == "leaked"
        return outcome.calls if leaked else None

    events = list(leak.events)
    assert tuple(released(events)) == leak.released
    for gone in range(len(events)):
        assert released(events[:gone] + events[gone + 1 :]) != list(leak.released)
    if events:
        assert leak.capture.provider in (leak.provider, "unknown")
        assert repr(Replay(leak.capture).run())
    assert f"leak by {leak.kind}" in repr(leak)


@pytest.mark.parametrize("name", DEAD)
def test_an_adapter_that_does_not_live_is_caught(name):
    trials = trials_of(DEAD[name])
    trials.intact([ONE_CALL])
    assert trials.report.deaths, DEAD[name].__doc__
    assert not trials.report.passed
    assert "dead: " in repr(trials.report)
    assert repr(trials.report.dead[0].capture)


def test_a_release_before_the_refusal_counts_as_executed():
    class ActsThenRaises:
        def __init__(self, tools):
            pass

        def accept(self, event):
            if event.get("type") == "response.output_item.done":
                return [("call_a", "read", '{"path": "aab.py"}')]
            return None

        def end(self):
            raise ValueError("too late")

    encoding = encoded(DIALECTS["responses"], SCRIPTS[0])
    outcome = run(ActsThenRaises, CATALOG, encoding.events[:-1])
    assert outcome.refused == "ValueError: too late"
    assert judge(encoding, encoding.events[:-1], outcome)[0] == "leaked"


@pytest.mark.parametrize(
    "released", [7, [7], [("a", "read")], [("a", "read", "no JSON")], [("a", "read", [1])], "ab"]
)
def test_what_is_no_list_of_calls_is_never_right(released):
    class Odd:
        def __init__(self, tools):
            pass

        def accept(self, _):
            return None

        def end(self):
            return released

    encoding = encoded(DIALECTS["chat"], SCRIPTS[0])
    outcome = run(Odd, CATALOG, encoding.events)
    assert judge(encoding, encoding.events, outcome)[0] in ("refused", "leaked")


def test_a_translator_is_tried_before_the_shared_assembly():
    report = check(maker(TallyTranslator), DIALECTS["tally"], mixtures=60)
    assert report.passed, f"\n{report!r}"
    assert set(report.unseen) == {row.what for row in DIALECTS["tally"].unseen}


def test_what_is_tried_is_an_adapter_with_plain_methods():
    with pytest.raises(TypeError, match="neither accept and end, nor translate and finish"):
        maker(dict)

    class Waits:
        async def accept(self, event):
            pass

        def end(self):
            pass

    with pytest.raises(TypeError, match="its accept is async"):
        maker(Waits)


def test_an_adapter_may_yield_its_calls():
    class Yields(ReaderAdapter):
        def accept(self, event):
            yield from super().accept(event) or ()

        def end(self):
            yield from super().end() or ()

    encoding = encoded(DIALECTS["chat"], THREE_CALLS)
    outcome = run(lambda tools: Yields("chat", tools), CATALOG, encoding.events)
    assert outcome.matches(THREE_CALLS.content)


def test_the_smallest_stream_lacks_nothing_that_is_needed():
    events = [{"n": n} for n in range(40)]
    needed = [events[3], events[4], events[29]]
    assert smallest(events, lambda some: all(event in some for event in needed)) == needed


# ------------------------------------------------------------------ streams as bytes, and the doors


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(("name", "done"), list(product(OWN, [True, False])))
def test_a_telling_is_released_from_its_bytes_with_and_without_the_done_marker(name, done):
    for encoding in every_encoding(DIALECTS[name], [THREE_CALLS, TEXT_AND_CALL]):
        source = b": a comment\n\n" + Capture.from_events(encoding.events, "encoded", name).source
        source += b"data: [DONE]\n\n" if done else b""
        capture = Capture.from_bytes(source, "encoded")
        found = list(inspect_capture(capture, "encoded", CATALOG))
        assert [i.verdict for i in found] == ["released"], (encoding.framing, found)
        assert [call.call_id for call in found[0].calls] == [c[0] for c in encoding.script.calls]


def test_the_fuzzer_counts_what_it_tried(capsys):
    assert fuzz.main(["--streams", "120", "--seed", "4", "--jobs", "1"]) == 0
    assert "120 hostile streams tried" in capsys.readouterr().out


def test_check_says_that_an_adapter_holds(capsys):
    assert (
        main(["check", "adapters:TallyTranslator", "--provider", "tally", "--mixtures", "60"]) == 0
    )
    out = capsys.readouterr().out
    assert out.startswith("adapters:TallyTranslator · Tally, an invented API\n")
    assert "0 leaked" in out.splitlines()[-1]


def test_check_shows_and_saves_what_leaks(capsys, tmp_path, monkeypatch):
    (tmp_path / "careless_adapter.py").write_text(CARELESS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    target = "careless_adapter:Careless"
    assert main(["check", target, "--mixtures", "50", "--save", "leaks"]) == 1
    out, err = capsys.readouterr()
    assert "leak by drop" in out
    assert "released  at event" in out
    assert "I print" not in out
    assert err == ""
    saved = Capture.load(tmp_path / "leaks" / "leak-by-drop.sse")
    assert saved.events[-1].data["says"] == "goodbye"


CARELESS = '''
import json

class Careless:
    """Counts nothing."""

    provider = "tally"

    def __init__(self, catalog):
        self.catalog, self.asks = catalog, {}

    def accept(self, event):
        print("I print")
        if event["says"] == "ask":
            self.asks[event["ask"]] = [event["tool"], ""]
        if event["says"] == "input":
            self.asks[event["ask"]][1] += event["piece"]
        if event["says"] == "goodbye" and event["why"] == "done":
            calls = [(i, tool, json.loads(text or "{}")) for i, (tool, text) in self.asks.items()]
            if any(self.catalog.problem(tool, value) for _, tool, value in calls):
                raise ValueError("not by the schema")
            return calls

    def end(self):
        return None
'''


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["adapters"], "expected MODULE:CLASS"),
        (["adapters.py:TallyTranslator"], "expected MODULE:CLASS"),
        (["../adapters:TallyTranslator"], "expected MODULE:CLASS"),
        (["no_such_module:Mine"], "cannot import no_such_module: ModuleNotFoundError"),
        (["adapters:Missing"], "module adapters has no Missing"),
        (["adapters:json"], "json has neither accept and end"),
        (["adapters:TallyTranslator"], "which API does adapters:TallyTranslator read?"),
        (["adapters:TallyTranslator", "--provider", "x"], "known are: responses, chat, messages"),
        (["raises_at_import:Mine"], "cannot import raises_at_import: ZeroDivisionError"),
        (["leaves_at_import:Mine"], "cannot import leaves_at_import: SystemExit"),
    ],
)
def test_check_explains_what_it_cannot_try(arguments, message, capsys, tmp_path, monkeypatch):
    (tmp_path / "raises_at_import.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "leaves_at_import.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_a_harm_reads_as_a_line():
    assert str(Mutation("cut", "terminal", "before event 3")) == "cut · terminal · before event 3"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has another way to interrupt")
def test_an_interrupted_fuzzer_ends_all_its_processes_in_one_line():
    """Ctrl-C in a terminal reaches each of them."""
    command = [sys.executable, "-m", "agentlib.conformance.fuzz", "--jobs", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as fuzzing:
        assert fuzzing.stderr.readline().startswith("0 of ")
        os.killpg(fuzzing.pid, signal.SIGINT)
        out, err = fuzzing.communicate(timeout=60)
        assert fuzzing.returncode == 130
    assert (out, err) == ("", "interrupted; nothing is reported\n")
    with pytest.raises(ProcessLookupError):
        os.killpg(fuzzing.pid, 0)
