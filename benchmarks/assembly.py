"""How fast a stream becomes a decision.

    python -m benchmarks.assembly

One response is read from its JSON payloads, again and again: half of it a text, half two calls, in
fragments of a few characters, as a model sends them. Each round times, one after the other,

- `json.loads` alone on the payloads,
- `json.loads`, translation, assembly and gate: what this project does for each event,
- `json.loads`, typed events and accumulation: what openai-python does in `responses.stream()`.

Processor time is taken, and the best round of each counts: the machine may have other work. Last
comes the cost of one event at 10,000 and at 100,000 fragments of one character, within the default
limits: it must not grow with the length of the stream.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from agentlib import Catalog, ResponseReader, ToolSpec
from agentlib.assembly import Decision
from benchmarks.figures import Figure, row

AIM_OVER_JSON = 2.0
AIM_OVER_SDK = 40.0
ROUNDS = 15
FRAGMENT = 5
PADDED = 16
SMALL, LARGE = 10_000, 100_000

TOOLS = Catalog([ToolSpec.strings("write_file", "Write a file.", path="Its path.", text="All.")])
# As long as the IDs of real streams are.
RESPONSE_ID = "resp_0a63f40a2632b74300699f8819a5e08196ac270722d5b1c3"
ITEM_ID = "item_0a63f40a2632b74300699f8819a5e08196ac270722d5b1c{}"


def payloads(text: str, contents: Sequence[str], size: int) -> list[str]:
    """Return the JSON payloads of a response that says `text` and writes each of `contents`.

    Fragments have `size` characters, at most PADDED.
    """
    events = [{"type": "response.created", "response": _body("in_progress", [])}]
    output = []
    for index, said in enumerate([text, *contents]):
        item, make = (_message(index, said), _say) if index == 0 else (_call(index, said), _write)
        output.append(item)
        place = {"output_index": index}
        empty = {**item, "content": []} if index == 0 else {**item, "arguments": ""}
        begun = {**empty, "status": "in_progress"}
        events.append({"type": "response.output_item.added", **place, "item": begun})
        events += make(item, place, size)
        events.append({"type": "response.output_item.done", **place, "item": item})
    events.append({"type": "response.completed", "response": _body("completed", output)})
    numbered = ({**event, "sequence_number": n} for event, n in zip(events, count(), strict=False))
    return [json.dumps(event) for event in numbered]


def _body(status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": RESPONSE_ID,
        "object": "response",
        "created_at": 1764500000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "gpt-5",
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _message(index: int, text: str) -> dict[str, Any]:
    return {
        "type": "message",
        "id": ITEM_ID.format(index),
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    }


def _call(index: int, content: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": ITEM_ID.format(index),
        "call_id": f"call_{index}",
        "name": "write_file",
        "arguments": json.dumps({"path": "notes.txt", "text": content}),
        "status": "completed",
    }


def _say(item: dict[str, Any], place: dict[str, Any], size: int) -> Iterator[dict[str, Any]]:
    where = {"item_id": item["id"], **place, "content_index": 0}
    (part,) = item["content"]
    empty = {**part, "text": ""}
    yield {"type": "response.content_part.added", **where, "part": empty}
    kind = {"type": "response.output_text.delta"}
    for piece in _pieces(part["text"], size):
        yield {**kind, **where, **_delta(piece), "logprobs": []}
    done = {"text": part["text"], "logprobs": []}
    yield {"type": "response.output_text.done", **where, **done}
    yield {"type": "response.content_part.done", **where, "part": part}


def _write(item: dict[str, Any], place: dict[str, Any], size: int) -> Iterator[dict[str, Any]]:
    where = {"item_id": item["id"], **place}
    for piece in _pieces(item["arguments"], size):
        yield {"type": "response.function_call_arguments.delta", **where, **_delta(piece)}
    whole = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **where, **whole}


def _delta(piece: str) -> dict[str, Any]:
    # The API pads each delta to one length by default, so that its size tells nothing.
    return {"delta": piece, "obfuscation": "x" * (PADDED - len(piece))}


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def parse(stream: Sequence[str]) -> None:
    """Parse the payloads, and nothing else."""
    for payload in stream:
        json.loads(payload)


def decide(stream: Sequence[str]) -> Decision:
    """Parse the payloads and read them, to the decision."""
    reader = ResponseReader("responses", TOOLS)
    decision = None
    for payload in stream:
        decision = reader.accept(json.loads(payload))
    assert decision is not None
    return decision


def sdk_accumulator() -> Callable[[Sequence[str]], Any]:
    """Return what openai-python does with the same payloads, up to its final response."""
    from openai import omit
    from openai._models import construct_type
    from openai.lib.streaming.responses._responses import ResponseStreamState
    from openai.types.responses import ResponseStreamEvent

    def accumulate(stream: Sequence[str]) -> Any:
        state: Any = ResponseStreamState(input_tools=omit, text_format=omit)
        for payload in stream:
            event: Any = construct_type(type_=ResponseStreamEvent, value=json.loads(payload))
            state.handle_event(event)
        return state._completed_response  # noqa: SLF001 - `get_final_response` returns this

    return accumulate


def best(rounds: int, runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the seconds of each run's best round; the rounds take turns."""
    seconds = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            gc.collect()
            gc.disable()
            begun = time.process_time()
            run()
            seconds[name] = min(seconds[name], time.process_time() - begun)
            gc.enable()
    return seconds


def one_by_one(fragments: int) -> list[str]:
    """Return a response of so many fragments of one character: half a text, the rest in calls."""
    calls = ["y" * (fragments * 16 // 100 - 40)] * 3
    return payloads("x" * (fragments * 52 // 100), calls, 1)


def figures(rounds: int = ROUNDS) -> Iterator[Figure]:
    """Yield the cost of an event, the two ratios of one run, and the cost in long streams."""
    stream = payloads(
        "A small step. " * 750, ["def add(a, b):\n    return a + b\n" * 180] * 2, FRAGMENT
    )
    accumulate = sdk_accumulator()
    final, decision = accumulate(stream), decide(stream)
    assert [i.arguments for i in final.output[1:]] == [
        json.dumps(dict(call.arguments)) for call in decision.calls
    ]
    runs: dict[str, Callable[[], object]] = {
        "json": lambda: parse(stream),
        "ours": lambda: decide(stream),
        "sdk": lambda: accumulate(stream),
    }
    seconds = best(rounds, runs)
    each = {name: 1e6 * value / len(stream) for name, value in seconds.items()}
    yield Figure("json.loads alone, an event", each["json"], "μs")
    yield Figure("bytes to decision, an event", each["ours"], "μs")
    yield Figure("openai-python's accumulation, an event", each["sdk"], "μs")
    ratio = each["ours"] / each["json"]
    yield Figure("bytes to decision over json.loads", ratio, "times", AIM_OVER_JSON)
    ratio = each["sdk"] / each["ours"]
    yield Figure("faster than openai-python", ratio, "times", AIM_OVER_SDK, most=False)
    streams = {size: one_by_one(size) for size in (SMALL, LARGE)}
    grown = best(rounds, {f"{size:,}": lambda size=size: decide(streams[size]) for size in streams})
    for name, size in zip(grown, streams, strict=True):
        cost = 1e6 * grown[name] / len(streams[size])
        yield Figure(f"an event among {name} of one character", cost, "μs")


if __name__ == "__main__":
    for figure in figures():
        print(row(figure, None))
