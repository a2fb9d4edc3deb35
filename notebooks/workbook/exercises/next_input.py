"""The input of the next request, with nothing lost, changed or out of order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeAlias

from agentlib.fixtures import capture
from agentlib.jsonvalues import thaw
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong
from workbook.pages.continuations import item_name
from workbook.pages.input_rules import objection

Native: TypeAlias = dict[str, Any]
FILE = "def add(a, b):\n    return a - b\n"


def _said(text: str) -> Native:
    return {"user": text}


def _answered(
    response: Native, results: Mapping[str, str] | None = None, verdict: str = "released"
) -> Native:
    return {"response": response, "verdict": verdict, "results": dict(results or {})}


def _body(stream: str) -> Native:
    return deepcopy(capture(stream).events[-1].data["response"])


def _made(*output: Native, status: str = "completed") -> Native:
    return {"id": "resp_made", "status": status, "error": None, "output": list(output)}


def _reasoning(number: int) -> Native:
    item_id, blob = f"rs_{number}", f"gAAAAABo-made-{number}"
    return {"id": item_id, "type": "reasoning", "summary": [], "encrypted_content": blob}


def _call(number: int, name: str, arguments: str = "{}") -> Native:
    identity = {"id": f"fc_{number}", "type": "function_call", "status": "completed"}
    return {**identity, "call_id": f"call_{number}", "name": name, "arguments": arguments}


def _message(number: int, text: str, **more: Any) -> Native:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    identity = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
    return {**identity, "status": "completed", "content": content, **more}


class _Case:
    """One history, and what has to come of it: the items by turn, or an error."""

    def __init__(self, turns: Sequence[Native], *, refused: str = "") -> None:
        self.turns = turns
        self.refused = refused

    def prepare(self) -> tuple[Any, ...]:
        return (deepcopy(list(self.turns)),)

    @property
    def kept(self) -> list[Native]:
        """Each output item that has to be in the input, in order."""
        released = (turn for turn in self.turns if turn.get("verdict") == "released")
        return [item for turn in released for item in turn["response"]["output"]]

    def judge(self, outcome: Outcome) -> Wrong | None:
        if self.refused:
            right = outcome.error is not None
            return None if right else Wrong(self.refused, "an error, of any kind")
        if outcome.error is not None:
            why = "Nothing is wrong with this history."
            if any(turn.get("verdict") == "rejected" for turn in self.turns):
                why = "A rejected response is left out, whatever it holds; the rest is in order."
            return Wrong(why, self._shown(self._expected()))
        items = outcome.value
        if not isinstance(items, list | tuple) or not all(isinstance(i, Mapping) for i in items):
            return Wrong("The input is a list of items.", "a list of dicts")
        return self._judge([_plain(item) for item in items])

    def _judge(self, items: list[Native]) -> Wrong | None:
        if _sorted(items) == _sorted(self._expected()):
            return None
        shown, seen = self._shown(self._expected()), self._shown(items)
        return Wrong(self._why(items), shown, f"returned {seen or 'an empty list'}")

    def _why(self, items: list[Native]) -> str:
        for turn in self.turns:
            if turn.get("verdict") == "rejected":
                theirs = turn["response"]["output"]
                if any(item in items for item in theirs if item not in self.kept):
                    return (
                        f"{turn['response']['id']} was rejected: to the conversation it never "
                        "happened, and none of its items goes back."
                    )
        changed = self._changed(items)
        if changed:
            return changed
        refused = objection(items, self._outputs())
        if refused:
            return f"The API would answer: {refused}"
        return "Every item has its place: turn by turn, and within a turn as the output has it."

    def _changed(self, items: list[Native]) -> str:
        by_id = {item["id"]: item for item in items if "id" in item}
        for item in self.kept:
            seen = by_id.get(item["id"])
            if seen is not None and seen != item:
                names = [key for key in {**item, **seen} if item.get(key) != seen.get(key)]
                return (
                    f"Item {item['id']!r} does not go back as it came: {', '.join(names)}. What "
                    "you do not understand may matter to the provider."
                )
        missing = next((item for item in self.kept if item not in items), None)
        if missing is not None and missing["type"] not in ("reasoning", "function_call"):
            return f"Item {missing['id']!r}, a {missing['type']}, is missing."
        return ""

    def _outputs(self) -> list[list[Native]]:
        return [turn["response"]["output"] for turn in self.turns if "response" in turn]

    def _expected(self) -> list[Native]:
        return [item for turn in self.turns for item in _items(turn)]

    def _shown(self, items: Iterable[Native]) -> str:
        return ", ".join(map(item_name, items))


def _items(turn: Native) -> Iterator[Native]:
    if "user" in turn:
        yield {"role": "user", "content": turn["user"]}
    elif turn["verdict"] == "released":
        yield from turn["response"]["output"]
        for call_id, output in turn["results"].items():
            yield {"type": "function_call_output", "call_id": call_id, "output": output}


def _plain(item: Mapping[str, Any]) -> Native:
    """Write an item as it is compared: a user's message has several lawful forms."""
    plain: Native = thaw(item)
    if plain.get("role") != "user":
        return plain
    content = plain.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    return {"role": "user", "content": content}


def _sorted(items: Iterable[Native]) -> list[Native]:
    """Put results that stand next to each other in the order of their call IDs: any is right."""
    ordered: list[Native] = []
    run: list[Native] = []
    for item in (*items, {}):
        if item.get("type") == "function_call_output":
            run.append(item)
            continue
        ordered += [*sorted(run, key=lambda each: str(each.get("call_id"))), item]
        run = []
    return ordered


def _cases() -> Iterator[tuple[str, str, _Case]]:
    ask, again = _said("The test of add() fails. Why?"), _said("Then repair it.")
    answer = _answered(_body("text_only"))
    read = _answered(_body("native_1_read"), {"call_read_1": FILE})
    told = _answered(_body("native_2_answer"))
    two = _answered(_body("interleaved"), {"call_read_2": "a test", "call_read_1": FILE})
    yield "text only", "turn 2", _Case([ask, answer])
    yield "two calls", "turn 2", _Case([ask, two])
    yield "reasoning and a search", "turn 2", _Case([ask, read])
    yield "reasoning and a search", "turn 4", _Case([ask, read, told, again])
    thought = _made(*map(_reasoning, range(3)), _message(1, "I look.", phase="commentary"))
    yield "three thoughts in a row", "turn 2", _Case([ask, _answered(thought)])
    later = {"id": "xx_1", "type": "something_later", "deep": [{"a": None}, "é", 1]}
    unknown = _answered(_made(_reasoning(1), later, _call(1, "test")), {"call_1": "1 failed"})
    yield "a kind of item from next year", "turn 2", _Case([ask, unknown, again])
    yield from _hostile(ask, again, read)


def _hostile(ask: Native, again: Native, read: Native) -> Iterator[tuple[str, str, _Case]]:
    whole = [_reasoning(1), _call(1, "test")]
    cut = _answered(_made(*whole, status="incomplete"), verdict="rejected")
    yield "incomplete, its call whole", "turn 2", _Case([ask, cut, again])
    broken = _made(*whole, _call(2, "edit", '{"path": '))
    rejected = _answered(broken, verdict="rejected")
    yield "completed, and rejected", "turn 2", _Case([ask, rejected, again])
    second = _answered(_made(_reasoning(3), _call(3, "test")), {"call_3": "1 failed"})
    yield "rejected, then asked again", "turn 3", _Case([ask, rejected, second])
    results = {"call_1": "1 failed"}
    lost = _answered(_made(*whole, _call(2, "list")), results)
    why = "Call 'call_2' has no result. No request can say that: {}"
    refused = objection([*lost["response"]["output"]][2:]) or ""
    yield "a result is missing", "turn 2", _Case([ask, lost], refused=why.format(refused))
    strange = _answered(read["response"], {"fc_1": FILE})
    why = (
        "The only result is under 'fc_1', an item ID. It answers no call, and the call has none: "
        "an input made of this would be refused, or worse."
    )
    yield "a result under the item's ID", "turn 2", _Case([ask, strange], refused=why)
    extra = _answered(_made(*whole), {**results, "call_9": "done"})
    why = "There is a result of 'call_9', and nobody called it."
    yield "a result of no call", "turn 2", _Case([ask, extra], refused=why)


def _trials() -> Iterator[Trial]:
    for name, place, case in _cases():
        hostile = bool(case.refused) or any(t.get("verdict") == "rejected" for t in case.turns)
        yield Trial(
            stream=name, place=place, prepare=case.prepare, judge=case.judge, hostile=hostile
        )


HINTS = (
    (
        "Choose nothing by its type. Of a turn that was released, every item of "
        'turn["response"]["output"] goes back, as it is; of one that was rejected, none.'
    ),
    (
        "Then look at the results. The call IDs of the output's function_call items, and the "
        'keys of turn["results"], have to be the same: compare them as sets, and raise '
        "ValueError where they are not."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="next_input(turns)",
        trials=_trials,
        hint_texts=HINTS,
    )
