"""Compose a recorded stream from what a model decides, in the words of the Responses API.

Every stream of the book is authored: the ones that all chapters share are fixtures, and this makes
the small ones that only one page needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from agentlib.recordings.capture import Capture

Native: TypeAlias = dict[str, Any]


def composed(
    name: str,
    *calls: tuple[str, str],
    text: str = "",
    call_ids: Sequence[str] = (),
    usage: Mapping[str, int] | None = None,
) -> Capture:
    """Return a completed response that says `text` and asks for `calls`, in order.

    Each call is the tool's name and its argument text, sent in two fragments exactly as given:
    this is the place to send text that no parser accepts. Item IDs are `fc_1`, `fc_2` and so on,
    call IDs `call_1`, `call_2`, or `call_ids`. `usage`, where given, is what the response says.
    """
    output = [*_message(text), *_calls(calls, call_ids)]
    body: Native = {"id": "resp_1", "status": "in_progress", "error": None, "output": []}
    ended = {**body, "status": "completed", "output": output}
    if usage is not None:
        ended["usage"] = dict(usage)
    natives = [
        {"type": "response.created", "response": body},
        *(event for place, item in enumerate(output) for event in _item_events(place, item)),
        {"type": "response.completed", "response": ended},
    ]
    numbered = ({**native, "sequence_number": n} for n, native in enumerate(natives))
    return Capture.from_events(numbered, name, "responses")


def _message(text: str) -> Iterator[Native]:
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        yield {"type": "message", "id": "msg_1", "status": "completed", "content": content}


def _calls(calls: Iterable[tuple[str, str]], call_ids: Sequence[str]) -> Iterator[Native]:
    for number, (name, arguments) in enumerate(calls, 1):
        yield {
            "type": "function_call",
            "id": f"fc_{number}",
            "status": "completed",
            "call_id": call_ids[number - 1] if call_ids else f"call_{number}",
            "name": name,
            "arguments": arguments,
        }


def _item_events(place: int, item: Native) -> Iterator[Native]:
    where = {"item_id": item["id"], "output_index": place}
    if item["type"] == "message":
        yield from _item_around(place, item, {"content": []}, _text_events(where, item))
    else:
        yield from _item_around(place, item, {"arguments": ""}, _call_events(where, item))


def _item_around(
    place: int, item: Native, empty: Native, inner: Iterable[Native]
) -> Iterator[Native]:
    begun = {**item, **empty, "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": place, "item": begun}
    yield from inner
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _text_events(where: Native, item: Native) -> Iterator[Native]:
    text = item["content"][0]["text"]
    part = {**where, "content_index": 0}
    yield {"type": "response.output_text.delta", **part, "delta": text}
    yield {"type": "response.output_text.done", **part, "text": text}


def _call_events(where: Native, item: Native) -> Iterator[Native]:
    kind, arguments = "response.function_call_arguments", item["arguments"]
    middle = (len(arguments) + 1) // 2
    for fragment in filter(None, (arguments[:middle], arguments[middle:])):
        yield {"type": f"{kind}.delta", **where, "delta": fragment}
    yield {"type": f"{kind}.done", **where, "arguments": arguments}
