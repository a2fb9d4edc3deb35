"""Adapters to try the contract kit on: a right one for the invented API, and broken ones.

Each broken one has a single fault that real code has had, and is right but for that.
"""

import json

from agentlib import Usage
from agentlib.conformance.trials import ReaderAdapter
from agentlib.failures import ProtocolViolation, ProviderStopped, ResponseFailure, StreamCut
from agentlib.providers.registry import PROVIDERS
from agentlib.vocabulary import (
    Completed,
    Opened,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolStart,
)


class TallyTranslator:
    """The reference adapter of the invented API: a translator for the shared assembly."""

    trailing = False

    def __init__(self, _options=None):
        self._number = 0
        self._reply = ""
        self._asks = set()

    def translate(self, native):
        self._number += 1
        number, says = native.get("n"), native["says"]
        if type(number) is not int or number != self._number:
            self._refuse(f"expected event number {self._number}, saw {number!r}")
        if (says == "hello") != (self._number == 1):
            self._refuse("expected hello first, and once")
        if says == "hello":
            self._reply = self._string(native, "reply")
            return (Opened(self._reply),)
        if says == "words":
            return (TextDelta("words", self._string(native, "words")),)
        if says == "thought":
            return (ReasoningDelta("thought", self._string(native, "words")),)
        if says == "ask":
            self._asks.add(self._string(native, "ask"))
            return (ToolStart(native["ask"], self._string(native, "tool")),)
        if says == "input":
            return (ToolArgsDelta(self._string(native, "ask"), self._string(native, "piece")),)
        return self._goodbye(native) if says == "goodbye" else ()

    def finish(self):
        return ()

    def is_meaningful(self, native):
        return native.get("says") != "wait"

    def _goodbye(self, native):
        tokens, usage = native.get("tokens"), None
        if isinstance(tokens, dict):
            usage = Usage(*(tokens.get(name) for name in ("in", "cached", "out", "thought")))
        if native.get("why") != "done":
            return (Stopped("goodbye", f"it says why: {native.get('why')!r}", usage),)
        asks = native.get("asks")
        wrong = type(asks) is not int or asks != len(self._asks)
        return (Completed(self._reply, "its asks do not add up" if wrong else "", usage=usage),)

    def _string(self, native, name):
        value = native.get(name)
        if not isinstance(value, str):
            self._refuse(f"expected a string as {name}, saw {value!r}")
        return value

    def _refuse(self, reason):
        raise ProtocolViolation(reason, check="lifecycle")


class Seen:
    """The calls of a stream as a plain reader collects them, of whatever API it is."""

    def __init__(self):
        self.calls = {}
        self.done = None

    def take(self, event):
        """Take an event; where it says that a call is done, `done` is that call."""
        self.done = None
        for choice in event.get("choices") or ():
            for call in (choice.get("delta") or {}).get("tool_calls") or ():
                function = call.get("function") or {}
                self._start(call.get("index"), call.get("id"), function.get("name"))
                self._more(call.get("index"), function.get("arguments"))
        for candidate in event.get("candidates") or ():
            for part in (candidate.get("content") or {}).get("parts") or ():
                self._part(part.get("functionCall"))
        item, block = event.get("item") or {}, event.get("content_block") or {}
        kind = event.get("type")
        if kind == "response.output_item.added" and item["type"] == "function_call":
            self._start(item["id"], item["call_id"], item["name"])
            self._more(item["id"], item["arguments"])
        elif kind == "content_block_start" and block["type"] == "tool_use":
            self._start(event["index"], block["id"], block["name"])
        elif kind == "response.function_call_arguments.delta":
            self._more(event["item_id"], event["delta"])
        elif kind == "content_block_delta":
            self._more(event["index"], event["delta"].get("partial_json"))
        elif kind == "response.output_item.done" and item["type"] == "function_call":
            self.calls[item["id"]][2] = item["arguments"]
            self.done = item["id"]
        elif kind == "content_block_stop" and event["index"] in self.calls:
            self.done = event["index"]

    def _part(self, call):
        if call is not None:
            if call.get("name"):
                self._start(len(self.calls), call.get("id"), call["name"])
                self.calls[len(self.calls) - 1][2] = "{}"
            held = self.calls[len(self.calls) - 1]
            arguments = json.loads(held[2]) | call.get("args", {})
            for piece in call.get("partialArgs", ()):
                name, value = piece["jsonPath"].removeprefix("$."), piece.get("stringValue")
                arguments[name] = arguments.get(name, "") + value
            held[2] = json.dumps(arguments)
            if not call.get("willContinue"):
                self.done = len(self.calls) - 1

    def _start(self, key, call_id, name):
        call = self.calls.setdefault(key, ["", "", ""])
        call[0], call[1] = call_id or call[0], name or call[1]

    def _more(self, key, text):
        if key in self.calls:
            self.calls[key][2] += text or ""
            if call_parses(self.calls[key]):
                self.done = key


def call_parses(call):
    try:
        return isinstance(json.loads(call[2]), dict)
    except ValueError:
        return False


class Faulty:
    """The project's own adapter, with an excuse for what it refuses: one fault, and no other."""

    provider = "responses"

    def __init__(self, catalog):
        self.catalog = catalog
        self.right = ReaderAdapter(self.provider, catalog)
        self.seen = Seen()

    def accept(self, event):
        try:
            self.seen.take(event)
        except (LookupError, TypeError, AttributeError):
            self.seen.done = None
        return self.tried(self.right.accept, event)

    def end(self):
        return self.tried(self.right.end)

    def tried(self, act, *event):
        try:
            return act(*event)
        except ResponseFailure as failure:
            calls = self.excuse(failure, *event)
            if calls is None:
                raise
            return calls

    def excuse(self, *_):
        return None

    def collected(self):
        return [tuple(call) for call in self.seen.calls.values() if self.good(*call)]

    def good(self, call_id, name, text):
        if not call_parses((call_id, name, text)) or self.catalog.get(name) is None:
            return False
        return self.catalog.problem(name, json.loads(text)) is None


class ActsAtDone(Faulty):
    """Acts as soon as one call is done, or as its arguments parse."""

    acted = None

    def tried(self, act, *event):
        calls = super().tried(act, *event)
        done, self.seen.done = self.seen.done, None
        if done is not None and self.good(*self.seen.calls[done]):
            self.acted = (self.acted or set()) | {done}
            return [tuple(self.seen.calls[done])]
        return None if self.acted else calls


class TakesAnyEnd(Faulty):
    """Takes failed, incomplete and length for ends as good as any."""

    def excuse(self, failure, *_):
        return self.collected() if isinstance(failure, ProviderStopped) else None


class TakesTheCut(Faulty):
    """Takes the end of the stream for the end of the response: it ignores the terminal event."""

    def excuse(self, failure, *_):
        return self.collected() if isinstance(failure, StreamCut) else None


class DropsRepeats(Faulty):
    """Takes an event that equals the one before it for a duplicate, and drops it in silence."""

    before = None

    def accept(self, event):
        said = {key: value for key, value in event.items() if key != "sequence_number"}
        same, self.before = said == self.before, said
        return None if same else super().accept(event)


class LeavesOutTheBroken(Faulty):
    """Releases the calls that are good, and leaves out the others."""

    def excuse(self, failure, *_):
        return self.collected() if failure.check in OF_ARGUMENTS else None


class Repairs(Faulty):
    """Closes what is open in arguments that do not parse."""

    def excuse(self, failure, *_):
        if failure.check != "strict_json":
            return None
        for call in self.seen.calls.values():
            tails = ("", "}", '"}', 'x"}')
            call[2] += next((t for t in tails if self.good(*call[:2], call[2] + t)), "")
        return self.collected()


class ReleasesTwice(Faulty):
    """Releases at the terminal event, and again at the end of the stream."""

    def end(self):
        first = super().end()
        decision = self.right.decision
        return [*(first or ()), *decision.calls] if decision else first


class TakesTheTerminalsWord(Faulty):
    """Runs what the terminal event says, whatever was streamed."""

    def excuse(self, failure, event=None):
        if failure.check not in OF_RESTATING:
            return None
        items = event["response"]["output"]
        calls = [item for item in items if item["type"] == "function_call"]
        return [(item["call_id"], item["name"], item["arguments"]) for item in calls]


class BelievesTheEvent(TakesTheTerminalsWord):
    """Sees response.completed, and never asks the body for its status."""

    def excuse(self, failure, event=None):
        if failure.check != "completed" or event["type"] != "response.completed":
            return None
        return self.collected()


class FirstValueWins(Faulty):
    """Parses as most do: of one name that stands twice in an object, one value wins unseen."""

    def excuse(self, failure, *_):
        return self.collected() if "stands twice" in failure.reason else None


class SumsUsage(Faulty):
    """Adds up usage that is cumulative."""

    total = 0

    def accept(self, event):
        self.total += (event.get("usage") or {}).get("prompt_tokens") or 0
        return super().accept(event)

    @property
    def usage(self):
        return Usage(self.total, 64, 30, 8)


class Refuses(Faulty):
    """Refuses everything: nothing leaks, and nothing lives."""

    def accept(self, _):
        raise ValueError("no")


OF_ARGUMENTS = {"exposed", "strict_json", "object", "schema"}
OF_RESTATING = {"calls_equal", "none_omitted", "none_invented", "texts_equal"}


def of(provider, fault):
    return type(fault.__name__, (fault,), {"provider": provider, "__doc__": fault.__doc__})


EVERYWHERE = (
    ActsAtDone,
    TakesAnyEnd,
    TakesTheCut,
    LeavesOutTheBroken,
    ReleasesTwice,
)
LEAKING = {
    f"{provider}: {fault.__name__}": of(provider, fault)
    for provider in PROVIDERS
    for fault in EVERYWHERE
} | {
    f"{provider}: {fault.__name__}": of(provider, fault)
    for provider, fault in (
        ("chat", DropsRepeats),
        ("messages", DropsRepeats),
        ("chat", Repairs),
        ("messages", Repairs),
        ("responses", TakesTheTerminalsWord),
        ("responses", BelievesTheEvent),
    )
}
DEAD = {
    f"{provider}: {fault.__name__}": of(provider, fault)
    for provider, fault in (
        ("responses", Refuses),
        ("responses", DropsRepeats),
        ("chat", DropsRepeats),
        ("chat", SumsUsage),
    )
}
