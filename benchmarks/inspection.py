"""How long `agentlib inspect` takes on a long response of each API.

    python -m benchmarks.inspection

Each stream is authored here: one text and one call, in fragments of one letter, with the fields
that the API sends on each event. The whole command is timed, from the file to what it prints,
without the start of Python; and in turns with it `json.loads` alone on the same payloads. Processor
time is taken, and the best round of each counts: the machine may have other work.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from agentlib.__main__ import main
from benchmarks.assembly import best, parse
from benchmarks.figures import Figure, row

AIM_OVER_JSON = 4.0
EVENTS = 60_000
ROUNDS = 5
# So many of one letter are within the default limits: of a text, and of a call.
FRAGMENT = "a"
FILE = "stream.sse"


def responses(events: int) -> Iterator[dict[str, Any]]:
    """Yield a response of the Responses API: a message, then a call."""
    fragments = (events - 9) // 4
    said, written = FRAGMENT * 3 * fragments, FRAGMENT * fragments
    message = {"type": "message", "id": "msg_0a63f40a2632b74300", "role": "assistant"}
    begun = {**message, "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": said, "annotations": []}
    whole = {**message, "status": "completed", "content": [part]}
    call = {
        "type": "function_call",
        "id": "fc_0a63f40a2632b74300",
        "call_id": "call_9",
        "name": "n",
    }
    called = {**call, "status": "completed", "arguments": f'{{"a":"{written}"}}'}
    head = {"id": "resp_0a63f40a2632b743", "object": "response", "error": None}
    for number, event in enumerate(
        (
            {"type": "response.created", "response": {**head, "status": "in_progress"}},
            {"type": "response.output_item.added", "output_index": 0, "item": begun},
            *(
                {
                    "type": "response.output_text.delta",
                    "item_id": message["id"],
                    "output_index": 0,
                    "content_index": 0,
                    "delta": FRAGMENT,
                    "logprobs": [],
                    "obfuscation": "x" * 15,
                }
                for _ in range(3 * fragments)
            ),
            {"type": "response.output_item.done", "output_index": 0, "item": whole},
            {
                "type": "response.output_item.added",
                "output_index": 1,
                "item": {**called, "status": "in_progress", "arguments": ""},
            },
            *(
                {
                    "type": "response.function_call_arguments.delta",
                    "item_id": call["id"],
                    "output_index": 1,
                    "delta": piece,
                    "obfuscation": "x" * 15,
                }
                for piece in ('{"a":"', *[FRAGMENT] * fragments, '"}')
            ),
            {"type": "response.output_item.done", "output_index": 1, "item": called},
            {
                "type": "response.completed",
                "response": {
                    **head,
                    "status": "completed",
                    "output": [whole, called],
                    "usage": {"input_tokens": 9, "output_tokens": events},
                },
            },
        )
    ):
        yield {**event, "sequence_number": number}


def chat(events: int) -> Iterator[dict[str, Any]]:
    """Yield a response of Chat Completions: a text, then a call."""
    fragments = (events - 6) // 4
    head = {
        "id": "chatcmpl-0a63f40a2632b743",
        "object": "chat.completion.chunk",
        "created": 1764500000,
        "model": "gpt-5",
        "system_fingerprint": "fp_0a63f40a26",
    }
    call = {"index": 0, "id": "call_9", "type": "function"}
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        *[{"content": FRAGMENT}] * 3 * fragments,
        {"tool_calls": [{**call, "function": {"name": "n", "arguments": ""}}]},
        *(
            {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
            for piece in ('{"a":"', *[FRAGMENT] * fragments, '"}')
        ),
    ]
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        yield {**head, "choices": [choice]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    yield {**head, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": events}}


def messages(events: int) -> Iterator[dict[str, Any]]:
    """Yield a response of the Messages API: a text block, then a tool's."""
    fragments = (events - 10) // 4
    head = {"id": "msg_0a63f40a", "type": "message", "role": "assistant", "content": []}
    usage = {"input_tokens": 9, "output_tokens": 1}
    yield {"type": "message_start", "message": {**head, "usage": usage}}
    yield _block(0, "start", {"type": "text", "text": ""})
    yield from [_block(0, "delta", {"type": "text_delta", "text": FRAGMENT})] * 3 * fragments
    yield {"type": "content_block_stop", "index": 0}
    yield _block(1, "start", {"type": "tool_use", "id": "toolu_9", "name": "n", "input": {}})
    for piece in ('{"a":"', *[FRAGMENT] * fragments, '"}'):
        yield _block(1, "delta", {"type": "input_json_delta", "partial_json": piece})
    yield {"type": "content_block_stop", "index": 1}
    ended = {"stop_reason": "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": events}}
    yield {"type": "message_stop"}


def _block(index: int, what: str, value: dict[str, Any]) -> dict[str, Any]:
    name = "delta" if what == "delta" else "content_block"
    return {"type": f"content_block_{what}", "index": index, name: value}


APIS: dict[str, Callable[[int], Iterator[dict[str, Any]]]] = {
    "responses": responses,
    "chat": chat,
    "messages": messages,
}


def payloads(api: str, events: int) -> list[str]:
    """Return the JSON payloads of a stream of this API with about as many events."""
    return [json.dumps(event, separators=(",", ":")) for event in APIS[api](events)]


def write(api: str, stream: Sequence[str], file: Path) -> None:
    """Write the payloads as an event stream, with the fields and the end of this API."""
    lines = [": authored for a benchmark", ""]
    for payload in stream:
        kind = json.loads(payload).get("type")
        lines += [*([f"event: {kind}"] if kind else []), f"data: {payload}", ""]
    lines += ["data: [DONE]", ""] if api == "chat" else []
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")


def inspect(file: Path) -> str:
    """Run the command on a file that is released, and return what it prints."""
    with redirect_stdout(io.StringIO()) as printed:
        status = main(["inspect", str(file)])
    assert status == 0, printed.getvalue()
    return printed.getvalue()


def figures() -> Iterator[Figure]:
    """Yield for each API how many times `json.loads` of the same data the command takes."""
    for api in APIS:
        stream = payloads(api, EVENTS)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, FILE)
            write(api, stream, file)
            took = best(ROUNDS, {"json": partial(parse, stream), "inspect": partial(inspect, file)})
        yield Figure(
            f"inspect, {len(stream):,} events of {api}",
            took["inspect"] / took["json"],
            "json.loads",
            AIM_OVER_JSON,
            of=f"{took['inspect']:.2f} s, json.loads {took['json']:.2f} s",
        )


if __name__ == "__main__":
    for figure in figures():
        print(row(figure, None))
