"""What is done to a told story: each harm is a small function from one telling to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentlib.attack.apis import Api
from agentlib.attack.arguments import CALL_IDS, Target, make_calls, other_text
from agentlib.attack.scenarios import Scenario
from agentlib.conformance.dialects.common import (
    ARGUMENTS,
    CALL_END,
    CALL_START,
    STOP_REASON,
    TERMINAL,
    Native,
    Said,
    Telling,
    changed,
)
from agentlib.conformance.dialects.registry import DIALECTS
from agentlib.conformance.script import Story, StoryCall
from agentlib.conversation import Usage
from agentlib.mutations import cut

# Numbers that nothing else in an agent's output is likely to be.
INPUT_TOKENS, OUTPUT_TOKENS = 70_001, 3_001
BILLED = Usage(INPUT_TOKENS, 0, OUTPUT_TOKENS, 0)
ANSWER_BILLED = Usage(500, 0, 50, 0)
ANSWER = "Done."

Harm = Callable[[Telling, Api, Target], Telling]


def tell(scenario: Scenario, target: Target, api: Api) -> list[Native]:
    """Return the native events of a scenario for a tool. Raises NotForThisTool."""
    story = Story(
        scenario.name,
        text=() if scenario.calls else (ANSWER,),
        calls=make_calls(target, scenario.calls),
        usage=BILLED,
        stop=scenario.stop,
    )
    return _events(_harmed(story, scenario, target, api))


def tell_answer(api: Api, final: Target | None = None) -> list[Native]:
    """Return the native events of a plain final answer, or of a call to the tool `final`."""
    story = Story("answer", text=(ANSWER,), usage=ANSWER_BILLED)
    if final is not None:
        call = StoryCall("call_answer_1", final.name, final.text)
        story = Story("answer", calls=(call,), usage=ANSWER_BILLED)
    return _events(DIALECTS[api].tell(story, DIALECTS[api].framings[0]))


def _harmed(story: Story, scenario: Scenario, target: Target, api: Api) -> Telling:
    dialect = DIALECTS[api]
    telling = dialect.tell(story, dialect.framings[0])
    for harm in scenario.harms:
        telling = HARMS[harm](telling, api, target)
    return telling


def _events(telling: Telling) -> list[Native]:
    return [said.event for said in telling]


# --------------------------------------------------------------------------------- the harms


def _last(telling: Telling, *places: str) -> int:
    return max(at for at, said in enumerate(telling) if said.place in places)


def _after_the_call(telling: Telling, *_: Any) -> Telling:
    return cut(telling, _last(telling, CALL_START, ARGUMENTS, CALL_END) + 1)


def _after_the_arguments(telling: Telling, *_: Any) -> Telling:
    return cut(telling, _last(telling, CALL_START, ARGUMENTS) + 1)


def _before_the_end(telling: Telling, *_: Any) -> Telling:
    return [said for said in telling if said.place != TERMINAL]


def _item_incomplete(telling: Telling, api: Api, _: Target) -> Telling:
    if api != "responses":
        return telling

    def marked(item: Native) -> Native:
        return {**item, "status": "incomplete"} if item["type"] == "function_call" else item

    def edited(said: Said) -> Said:
        event = said.event
        if event["type"] == "response.output_item.done":
            return changed(said, item=marked(event["item"]))
        if said.place == TERMINAL:
            output = [marked(item) for item in event["response"]["output"]]
            return changed(said, response={**event["response"], "output": output})
        return said

    return [edited(said) for said in telling]


def _error_instead(error: Native) -> Harm:
    def harm(telling: Telling, *_: Any) -> Telling:
        return [*_before_the_end(telling), Said(TERMINAL, error)]

    return harm


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


def _other_arguments(telling: Telling, _: Api, target: Target) -> Telling:
    body = telling[-1].event["response"]
    output = [{**item, "arguments": other_text(target)} for item in body["output"]]
    return [*telling[:-1], changed(telling[-1], response={**body, "output": output})]


def _nothing_at_the_end(telling: Telling, *_: Any) -> Telling:
    body = telling[-1].event["response"]
    return [*telling[:-1], changed(telling[-1], response={**body, "output": []})]


def _second_after_the_end(telling: Telling, api: Api, _: Target) -> Telling:
    late = [said for said in telling if said.call == CALL_IDS[1]]
    first = [said for said in telling if said.call != CALL_IDS[1]]
    if api == "responses":
        body = first[-1].event["response"]
        end = changed(first[-1], response={**body, "output": body["output"][:1]})
        first = [*first[:-1], end]
    return [*first, *late]


def _usage_again(telling: Telling, api: Api, _: Target) -> Telling:
    if api == "messages":
        full = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
        return [
            changed(said, usage=full) if said.place == STOP_REASON else said for said in telling
        ]
    told = next(said.event["usage"] for said in telling if said.event.get("usage"))
    return [changed(said, usage=told) for said in telling]


HARMS: dict[str, Harm] = {
    "cut after the call": _after_the_call,
    "cut after the arguments": _after_the_arguments,
    "cut before the end": _before_the_end,
    "item incomplete": _item_incomplete,
    "flat error": _error_instead(_FLAT),
    "nested error": _error_instead(_NESTED),
    "other arguments at the end": _other_arguments,
    "nothing at the end": _nothing_at_the_end,
    "second call after the end": _second_after_the_end,
    "usage again": _usage_again,
}
