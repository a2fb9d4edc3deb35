"""The scenarios as native events; each mutation is a function from one encoding to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentlib.attack.apis import Api
from agentlib.attack.arguments import CALL_IDS, Target, make_calls
from agentlib.attack.scenario import Scenario
from agentlib.conformance.dialects.common import (
    ARGUMENTS,
    CALL_END,
    CALL_START,
    STOP_REASON,
    TERMINAL,
    EncodedEvent,
    Encoding,
    Native,
    changed,
)
from agentlib.conformance.dialects.registry import DIALECTS
from agentlib.conformance.script import Script, ScriptCall
from agentlib.conversation import Usage
from agentlib.mutations import cut

# Numbers that nothing else in an agent's output is likely to be.
INPUT_TOKENS, OUTPUT_TOKENS = 70_001, 3_001
BILLED = Usage(INPUT_TOKENS, 0, OUTPUT_TOKENS, 0)
ANSWER_BILLED = Usage(500, 0, 50, 0)
ANSWER = "Done."

Mutation = Callable[[Encoding, Api, Target], Encoding]


def encode(scenario: Scenario, target: Target, api: Api) -> list[Native]:
    """Return the native events of a scenario for a tool. Raises NotForThisTool."""
    script = Script(
        scenario.name,
        text=() if scenario.calls else (ANSWER,),
        calls=make_calls(target, scenario.calls),
        usage=BILLED,
        stop=scenario.stop,
    )
    return _events(_mutated(script, scenario, target, api))


def encode_answer(api: Api, final: Target | None = None) -> list[Native]:
    """Return the native events of a plain final answer, or of a call to the tool `final`."""
    script = Script("answer", text=(ANSWER,), usage=ANSWER_BILLED)
    if final is not None:
        call = ScriptCall("call_answer_1", final.name, final.text)
        script = Script("answer", calls=(call,), usage=ANSWER_BILLED)
    return _events(DIALECTS[api].encode(script, DIALECTS[api].framings[0]))


def _mutated(script: Script, scenario: Scenario, target: Target, api: Api) -> Encoding:
    dialect = DIALECTS[api]
    encoding = dialect.encode(script, dialect.framings[0])
    for mutation in scenario.mutations:
        encoding = MUTATIONS[mutation](encoding, api, target)
    for call in make_calls(target, scenario.restates):
        encoding = _restating(encoding, call.arguments)
    return encoding


def _events(encoding: Encoding) -> list[Native]:
    return [sent.event for sent in encoding]


# --------------------------------------------------------------------------------- the mutations


def _last(encoding: Encoding, *places: str) -> int:
    return max(at for at, sent in enumerate(encoding) if sent.place in places)


def _after_the_call(encoding: Encoding, *_: Any) -> Encoding:
    return cut(encoding, _last(encoding, CALL_START, ARGUMENTS, CALL_END) + 1)


def _after_the_arguments(encoding: Encoding, *_: Any) -> Encoding:
    return cut(encoding, _last(encoding, CALL_START, ARGUMENTS) + 1)


def _before_the_end(encoding: Encoding, *_: Any) -> Encoding:
    return [sent for sent in encoding if sent.place != TERMINAL]


def _item_incomplete(encoding: Encoding, api: Api, _: Target) -> Encoding:
    if api != "responses":
        return encoding

    def marked(item: Native) -> Native:
        return {**item, "status": "incomplete"} if item["type"] == "function_call" else item

    def edited(sent: EncodedEvent) -> EncodedEvent:
        event = sent.event
        if event["type"] == "response.output_item.done":
            return changed(sent, item=marked(event["item"]))
        if sent.place == TERMINAL:
            output = [marked(item) for item in event["response"]["output"]]
            return changed(sent, response={**event["response"], "output": output})
        return sent

    return [edited(sent) for sent in encoding]


def _error_instead(error: Native) -> Mutation:
    def mutation(encoding: Encoding, *_: Any) -> Encoding:
        return [*_before_the_end(encoding), EncodedEvent(TERMINAL, error)]

    return mutation


_FLAT: Native = {
    "type": "error",
    "code": "server_error",
    "message": "The server broke.",
    "param": None,
}
_NESTED: Native = {
    "type": "error",
    "error": {
        "type": "server_error",
        "code": "server_error",
        "message": "It broke.",
        "param": None,
    },
}


def _restating(encoding: Encoding, arguments: str) -> Encoding:
    body = encoding[-1].event["response"]
    output = [{**item, "arguments": arguments} for item in body["output"]]
    return [*encoding[:-1], changed(encoding[-1], response={**body, "output": output})]


def _nothing_at_the_end(encoding: Encoding, *_: Any) -> Encoding:
    body = encoding[-1].event["response"]
    return [*encoding[:-1], changed(encoding[-1], response={**body, "output": []})]


def _second_after_the_end(encoding: Encoding, api: Api, _: Target) -> Encoding:
    late = [sent for sent in encoding if sent.call == CALL_IDS[1]]
    first = [sent for sent in encoding if sent.call != CALL_IDS[1]]
    if api == "responses":
        body = first[-1].event["response"]
        end = changed(first[-1], response={**body, "output": body["output"][:1]})
        first = [*first[:-1], end]
    return [*first, *late]


def _usage_again(encoding: Encoding, api: Api, _: Target) -> Encoding:
    if api == "messages":
        full = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
        return [
            changed(sent, usage=full) if sent.place == STOP_REASON else sent for sent in encoding
        ]
    usage = next(sent.event["usage"] for sent in encoding if sent.event.get("usage"))
    return [changed(sent, usage=usage) for sent in encoding]


MUTATIONS: dict[str, Mutation] = {
    "cut after the call": _after_the_call,
    "cut after the arguments": _after_the_arguments,
    "cut before the end": _before_the_end,
    "item incomplete": _item_incomplete,
    "flat error": _error_instead(_FLAT),
    "nested error": _error_instead(_NESTED),
    "nothing at the end": _nothing_at_the_end,
    "second call after the end": _second_after_the_end,
    "usage again": _usage_again,
}
