"""An adapter, and the next input: right answers pass, wrong ones are caught where they are."""

import itertools

import pytest
from answers import assert_caught, assert_right

from agentlib.assembly import Assembly
from agentlib.conformance.contract import Trials
from agentlib.conformance.dialects.registry import DIALECTS
from agentlib.conformance.trials import maker
from agentlib.vocabulary import (
    Completed,
    Opened,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolStart,
)
from workbook.exercises.catalogue import exercise
from workbook.exercises.tally_adapter import SmallTranslator

# ------------------------------------------------------------------------ 07, right


class ByMatch(SmallTranslator):
    """Counts with an iterator, reads with `match`, and tells the thoughts too."""

    def __init__(self, options):
        super().__init__(options)
        self.numbers = itertools.count(1)
        self.reply, self.asked = "", []

    def translate(self, event):
        assert type(event["n"]) is int
        assert event["n"] == next(self.numbers)
        match event:
            case {"says": "hello", "reply": self.reply}:
                raise AssertionError
            case {"says": "hello", "reply": reply}:
                self.reply = reply
                return [Opened(reply)]
            case {"says": "words", "words": words}:
                return [TextDelta("answer", words)]
            case {"says": "thought", "words": words}:
                return [ReasoningDelta("thought", words)]
            case {"says": "ask", "ask": ask, "tool": tool}:
                self.asked.append(ask)
                return [ToolStart(ask, tool)]
            case {"says": "input", "ask": ask, "piece": piece}:
                return [ToolArgsDelta(ask, piece)]
            case {"says": "goodbye", "why": "done", "asks": asks} if asks == len(self.asked):
                return [Completed(self.reply)]
            case {"says": "hello" | "words" | "ask" | "input" | "goodbye"}:
                raise AssertionError(event)
        return []


class ByTable:
    """A translator of its own, with a table of small functions and a stop of its own."""

    def __init__(self, options):
        self.exposes = options.exposes
        self.count = self.asks = 0
        self.reply = None

    def translate(self, event):
        self.count += 1
        if event["n"] != self.count:
            return (Stopped("disorder", f"event {event['n']} instead of {self.count}"),)
        tell = getattr(self, f"on_{event['says']}", None)
        return () if tell is None else (tell(event),)

    def on_hello(self, event):
        self.reply = event["reply"]
        return Opened(self.reply)

    def on_words(self, event):
        return TextDelta("words", event["words"])

    def on_ask(self, event):
        self.asks += 1
        return ToolStart(event["ask"], event["tool"])

    def on_input(self, event):
        return ToolArgsDelta(event["ask"], event["piece"])

    def on_goodbye(self, event):
        if event["why"] != "done":
            return Stopped("goodbye", repr(event["why"]))
        return Completed(self.reply, "" if event["asks"] == self.asks else "asks differ")

    def finish(self):
        return ()


class WholeAdapter:
    """No translator but an adapter, around an assembly of its own."""

    def __init__(self, catalog):
        self.assembly = Assembly(catalog)
        self.translator = ByTable(type("Options", (), {"exposes": catalog.exposes}))

    def accept(self, event):
        if self.assembly.state == "released":
            return None
        decisions = [self.assembly.accept(each) for each in self.translator.translate(event)]
        decision = next(filter(None, decisions), None)
        return None if decision is None else decision.calls

    def end(self):
        self.assembly.end()


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("answer", [ByMatch, ByTable, WholeAdapter])
def test_a_right_adapter_is_right_however_it_is_written(answer):
    assert_right("07", answer)


@pytest.mark.parametrize("answer", [ByMatch, ByTable, WholeAdapter])
def test_a_right_adapter_keeps_the_whole_contract(answer):
    trials = Trials(maker(answer), DIALECTS["tally"])
    trials.intact()
    trials.mixtures(300, seed=7)

    assert trials.report.passed, trials.report


# ------------------------------------------------------------------------ 07, wrong


class LooksAtNoNumber(ByTable):
    def translate(self, event):
        return super().translate({**event, "n": self.count + 1})


class CountsNoAsks(ByTable):
    def on_goodbye(self, event):
        return super().on_goodbye({**event, "asks": self.asks})


class TakesAnyEnd(ByTable):
    def on_goodbye(self, event):
        return super().on_goodbye({**event, "why": "done"})


class JoinsToTheLatest(ByTable):
    def on_ask(self, event):
        self.latest = event["ask"]
        return super().on_ask(event)

    def on_input(self, event):
        return super().on_input({**event, "ask": self.latest})


class RefusesUnknownWords(ByTable):
    def translate(self, event):
        assert hasattr(self, f"on_{event['says']}")
        return super().translate(event)


class CountsKnownWordsOnly(ByTable):
    def translate(self, event):
        return super().translate(event) if hasattr(self, f"on_{event['says']}") else ()


class ThinksAloud(ByTable):
    on_thought = ByTable.on_words


class RunsWhatItHas:
    def __init__(self, catalog):
        self.catalog, self.asks = catalog, {}

    def accept(self, event):
        if event["says"] == "ask":
            self.asks[event["ask"]] = [event["ask"], event["tool"], ""]
        if event["says"] == "input":
            self.asks[event["ask"]][2] += event["piece"]

    def end(self):
        return [(ask, tool, text or "{}") for ask, tool, text in self.asks.values()]


WRONG_ADAPTERS = {
    LooksAtNoNumber: ("three calls, an event is lost", "The numbers have a gap"),
    CountsNoAsks: ("three calls, a field is damaged", "what the goodbye counts"),
    TakesAnyEnd: ("one call, another end", "It did not end because it was done"),
    JoinsToTheLatest: ("three calls, encoded as", "Nothing is wrong with this reply"),
    RefusesUnknownWords: ("text only, encoded as unknown words", "Nothing is wrong"),
    CountsKnownWordsOnly: ("text only, encoded as unknown words", "Nothing is wrong"),
    ThinksAloud: ("reasoned, encoded as plain", "not what the reply says"),
    RunsWhatItHas: ("one call, the stream ends early", "It never said goodbye"),
}


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("answer", WRONG_ADAPTERS)
def test_a_wrong_adapter_is_caught_where_it_is_wrong(answer):
    assert_caught("07", answer, *WRONG_ADAPTERS[answer])


class NeverEnds(SmallTranslator):
    def translate(self, event):
        while event:
            pass


class Exits(SmallTranslator):
    def translate(self, event):
        raise SystemExit(event["n"])


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (NeverEnds, "waits for what never comes"),
        (Exits, "Nothing is wrong with this reply"),
        (SmallTranslator, "Nothing is wrong with this reply"),
        (dict, "neither accept and end, nor translate and finish"),
        (None, "expected your function, saw None"),
    ],
)
def test_what_is_no_adapter_gets_a_verdict(answer, said):
    verdict = exercise("07").check(answer)

    assert not verdict.passed
    assert said in verdict.why, verdict.text


# ------------------------------------------------------------------------ 08, right


def in_one_list(turns):
    items = []
    for turn in turns:
        if "user" in turn:
            items.append({"role": "user", "content": turn["user"]})
        elif turn["verdict"] == "released":
            output, results = turn["response"]["output"], turn["results"]
            called = {item["call_id"] for item in output if item["type"] == "function_call"}
            if called != set(results):
                raise ValueError(called ^ set(results))
            items += [*output, *(result(*each) for each in results.items())]
    return items


def result(call_id, text):
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def as_a_generator(turns):
    """Results in the order of their calls, and the user's message in its long form."""
    for turn in turns:
        if "user" in turn:
            content = [{"type": "input_text", "text": turn["user"]}]
            yield {"type": "message", "role": "user", "content": content}
        elif turn["verdict"] == "released":
            results = dict(turn["results"])
            yield from turn["response"]["output"]
            for item in turn["response"]["output"]:
                if item["type"] == "function_call":
                    yield result(item["call_id"], results.pop(item["call_id"]))
            assert not results


def that_changes_its_input(turns):
    items = in_one_list(turns)
    for turn in turns:
        turn.clear()
    return tuple(items)


@pytest.mark.parametrize("answer", [in_one_list, as_a_generator, that_changes_its_input])
def test_a_right_input_is_right_however_it_is_written(answer):
    assert_right("08", answer)


# ------------------------------------------------------------------------ 08, wrong


def without_reasoning(turns):
    return [item for item in in_one_list(turns) if item.get("type") != "reasoning"]


def known_kinds_only(turns):
    kinds = {"message", "function_call", "function_call_output", "reasoning", "web_search_call"}
    return [item for item in in_one_list(turns) if item.get("type", "message") in kinds]


def calls_first(turns):
    return sorted(in_one_list(turns), key=lambda item: item.get("type") == "reasoning")


def results_last(turns):
    return sorted(in_one_list(turns), key=lambda item: item.get("type") == "function_call_output")


def tidied(turns):
    return [{k: v for k, v in item.items() if k != "phase"} for item in in_one_list(turns)]


def each_thought_once(turns):
    thoughts, items = 0, []
    for item in in_one_list(turns):
        thoughts = thoughts + 1 if item.get("type") == "reasoning" else 0
        items += [item] if thoughts < 2 else []
    return items


def by_the_status(turns):
    for turn in turns:
        if "response" in turn and turn["response"]["status"] == "completed":
            turn["verdict"] = "released"
    return without_asking_the_results(turns)


def everything(turns):
    return without_asking_the_results([{**turn, "verdict": "released"} for turn in turns])


def without_asking_the_results(turns):
    items = []
    for turn in turns:
        if "user" in turn:
            items.append({"role": "user", "content": turn["user"]})
        elif turn["verdict"] == "released":
            items += turn["response"]["output"]
            items += [result(*each) for each in turn["results"].items()]
    return items


def without_the_user(turns):
    return [item for item in in_one_list(turns) if item.get("role") != "user"]


def results_by_item(turns):
    items = in_one_list(turns)
    names = {i["call_id"]: i["id"] for i in items if i.get("type") == "function_call"}
    return [
        {**item, "call_id": names[item["call_id"]]} if "output" in item else item for item in items
    ]


WRONG_INPUTS = {
    without_reasoning: ("reasoning and a search, turn 2", "without its required 'reasoning'"),
    known_kinds_only: ("a kind of item from next year", "'xx_1', a something_later, is missing"),
    calls_first: ("reasoning and a search, turn 2", "without its required following item"),
    results_last: ("reasoning and a search, turn 4", "turn by turn"),
    tidied: ("three thoughts in a row", "does not go back as it came: phase"),
    each_thought_once: ("three thoughts in a row", "without its required"),
    by_the_status: ("completed, and rejected", "was rejected: to the conversation it never"),
    everything: ("incomplete, its call whole", "was rejected: to the conversation it never"),
    without_asking_the_results: ("a result is missing", "No tool output found for function call"),
    without_the_user: ("text only, turn 2", "Every item has its place"),
    results_by_item: ("two calls, turn 2", "No tool call found for function call output"),
}


@pytest.mark.parametrize("answer", WRONG_INPUTS)
def test_a_wrong_input_is_caught_where_it_is_wrong(answer):
    assert_caught("08", answer, *WRONG_INPUTS[answer])


@pytest.mark.parametrize(
    "value",
    [[{"id": ["x"]}], [{"type": "function_call"}], [{"id": "rs_1"}] * 2, [{"role": "user"}]],
)
def test_odd_items_get_a_verdict(value):
    assert not exercise("08").check(lambda _turns: value).passed
