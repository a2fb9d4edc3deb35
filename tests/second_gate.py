"""A second, independent reading of the completion gate's rules: a test oracle for the first."""

# fmt: off
import json
import math
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

MAX_CALLS, MAX_DEPTH = 8, 64  # the outer object is level 1
MAX_CHARS = 16_000


@dataclass(frozen=True)
class Ruling:
    """The verdict: calls is None when refused, () when released without a call."""

    calls: tuple[tuple[str, str, dict[str, Any]], ...] | None
    reason: str


def need(condition: object, reason: str) -> None:
    if not condition:
        raise ValueError(reason)


def typed(value: Any, kind: type, what: str) -> Any:
    """The value, where it is exactly of this JSON type (true is no index); an index is >= 0."""
    need(type(value) is kind and (kind is not int or value >= 0), f"{what} is {value!r:.80}")
    return value


def judge(api: str, events: list[Any], tools: list[dict[str, Any]] | None) -> Ruling:
    """Rule on the events of one response; after the last one the stream ended."""
    reader = {"responses": read_responses, "chat": read_chat, "messages": read_messages}[api]
    try:
        return Ruling(check_calls(reader(events, tools or []), tools), "complete and validated")
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as broken:
        return Ruling(None, f"{broken}")  # what has a wrong shape is refused too


def whole(text: str) -> str:
    """Join surrogate halves that were cut between two fragments; a lone half stays as it is."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs), "arguments hold a name twice")
    return dict(pairs)


def walk(value: Any, depth: int = 1) -> None:
    """Bound the nesting; refuse lone surrogates, NaN and what overflows to infinity."""
    need(type(value) is not float or math.isfinite(value), "a number that is not finite")
    if isinstance(value, str):
        need(not any("\ud800" <= ch <= "\udfff" for ch in value), "a lone surrogate")
    elif isinstance(value, dict | list):
        need(depth <= MAX_DEPTH, f"arguments nest deeper than {MAX_DEPTH}")
        for inner in [*value, *value.values()] if isinstance(value, dict) else value:
            walk(inner, depth + 1)


def check_calls(found: list[tuple[Any, Any, str]], tools: list[dict[str, Any]] | None) -> tuple:
    """Check identity, arguments and schema of every call; one bad call refuses them all."""
    need(len(found) <= MAX_CALLS, f"more than {MAX_CALLS} calls")
    need(all(type(word) is str and word for call in found for word in call[:2]), "no ID or name")
    need(len({call_id for call_id, _, _ in found}) == len(found), "a call ID is used twice")
    catalog = {tool["name"]: tool.get("parameters", {}) for tool in tools or ()}
    calls = []
    for call_id, name, text in found:
        need(len(text) <= MAX_CHARS, f"arguments are longer than {MAX_CHARS} characters")
        value = json.loads(text, object_pairs_hook=once)  # "" is no JSON: refused, never {}
        walk([call_id, name, typed(value, dict, "the arguments' value")], depth=0)
        need(tools is None or name in catalog, f"unknown tool {name!r}")
        try:
            validator = Draft202012Validator(catalog.get(name, {}))
            validator.check_schema(validator.schema)
            error = next(validator.iter_errors(value), None)
        except Exception as broken:  # noqa: BLE001 - an unusable schema has validated nothing
            raise ValueError(f"the schema of {name!r} cannot be used: {broken}") from None
        need(error is None, f"arguments of {name!r} do not match: {error and error.message}")
        calls.append((call_id, name, value))
    return tuple(calls)


# OpenAI Responses: texts stream as <family>.delta and .done; the text's key, the item's kind.
FAMILIES = {
    "output_text": ("text", "message"), "refusal": ("refusal", "message"),
    "reasoning_text": ("text", "reasoning"), "reasoning_summary_text": ("text", "reasoning"),
    "function_call_arguments": ("arguments", "function_call")}
OWN = {"message", "function_call", "reasoning"}
HOSTED = {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
          "mcp_call", "mcp_list_tools", "compaction", "program", "program_output",
          "tool_search_call", "tool_search_output", "shell_call_output"}
ADDRESSED = HOSTED | {"content_part", "reasoning_part", "reasoning_summary_part"}
STEPS = {"output_item": ("added", "done"), **dict.fromkeys(FAMILIES, ("delta", "done"))}
STOPPED = {"error", *(f"response.{s}" for s in ("error", "failed", "incomplete", "cancelled"))}
BODIES = {"response.created": (None, "in_progress", "queued"), "response.completed": ("completed",),
          "response.queued": (None, "queued"), "response.in_progress": (None, "in_progress")}


class Item:
    """One output item: what was said of it first, and its texts by (index, family)."""

    def __init__(self, kind: str, index: int) -> None:
        self.kind, self.index, self.said = kind, index, {}
        self.texts, self.closed = {}, set()

    def same(self, body: dict[str, Any], *keys: str) -> None:
        """Keep what is said first; whatever is said again must be the same."""
        for key in keys if self.kind == "function_call" else {*keys} & {"id"}:
            if body.get(key) is not None:
                need(self.said.setdefault(key, body[key]) == body[key], f"{key} differs")
        self.by_program = (self.said.get("caller") or {}).get("type") == "program"

    def restate(self, body: dict[str, Any], where: str) -> None:
        """Compare the item, as it is added, done or listed at the end, with what is known."""
        need(typed(body, dict, "item").get("type") == self.kind, "an item's type changed")
        self.same(body, "id", "call_id", "name", "caller")
        status, own, untold = body.get("status"), self.kind in OWN, not (
            self.closed or any(self.texts.values()))
        legal = {"completed"} | ({"in_progress"} if where == "added" or self.by_program else set())
        need(status is None or (status in legal if own else type(status) is str),
             f"{self.kind} {where} with status {status!r}")  # a hosted item may fail over there
        call = {"type": "function_call_arguments", "arguments": body.get("arguments")}
        parts = {"message": body.get("content"), "function_call": [call]}.get(self.kind) or []
        new = {(i, part["type"]): part.get(FAMILIES[part["type"]][0])
               for i, part in enumerate(parts) if part.get("type") in FAMILIES}
        new = {slot: typed(t, str, "text") for slot, t in new.items() if t is not None}
        self.closed |= {"all"} if where == "done" else set()
        if where == "added" or (where == "done" and untold):
            self.texts.update(new)  # a first statement: some servers send all of it only at done
        elif own and self.kind != "reasoning" and (where == "end" or new):
            # compared in order and not by position: vLLM counts content_index across items
            old = [(f, whole(text)) for (_, f), text in sorted(self.texts.items()) if text]
            need(old == [(f, whole(text)) for (_, f), text in new.items() if text],
                 f"the {self.kind}, as restated ({where}), is not what was streamed")

    def stream(self, family: str, event: dict[str, Any], final: bool) -> None:
        """Add a delta to the text that it names, or compare that text's end with its deltas."""
        key, kind = FAMILIES[family]
        need(self.kind == kind, f"{family} of a {self.kind}")
        index = event.get("content_index", event.get("summary_index", 0))
        slot = typed(index, int, "the text's index"), family
        text, old = typed(event.get(key if final else "delta"), str, "text"), self.texts.get(slot)
        if final:
            self.same(event, "call_id", "name")
            need(whole(old or "") == whole(text) or not (old or "all" in self.closed),
                 f"{family} done is not its joined deltas")
            self.closed.add(slot)
        need(final or not self.closed & {slot, "all"}, f"{family} grows after it was done")
        self.texts[slot] = text if final else (old or "") + text


def read_responses(events: list[Any], tools: list[dict[str, Any]]) -> list:
    """Read up to the first terminal event; the ID is compared on every event that has one."""
    items, calls, opened, kind = [], [], None, None
    for event in events:
        kind = typed(typed(event, dict, "an event").get("type"), str, "type")
        need(kind not in STOPPED and event.get("error") is None, f"stopped by {kind}")
        family, _, step = kind.removeprefix("response.").rpartition(".")
        body, part, index = event.get("response"), event.get("part"), event.get("output_index")
        known = kind in BODIES or family in ADDRESSED or step in STEPS.get(family, ())
        inner, made = body.get("id") if type(body) is dict else None, event.get("item") or {}
        if kind == "response.created":
            need(opened is None and inner, "opened twice, or without an ID")
            opened = typed(inner, str, "the response ID")
        need(opened or not known or kind == "response.queued", f"{kind} before response.created")
        need(not opened or all(x in (None, opened) for x in (inner, event.get("response_id"))),
             "another response's ID")
        if kind in BODIES:
            need(typed(body, dict, "response").get("status") in BODIES[kind], f"{kind}: status")
            need(body.get("error") is None is body.get("incomplete_details"), f"{kind}: an error")
        if kind == "response.completed":
            break
        if kind == "response.output_item.added":
            same = [i for i in items if index == i.index or made.get("id") == i.said.get("id", ())]
            need(not same, "two items at one output_index or with one ID")
            items.append(Item(typed(made.get("type"), str, "type"), typed(index, int, "index")))
            items[-1].restate(made, "added")
        elif known and kind not in BODIES:
            name = made.get("id", event.get("item_id"))
            item = next((i for i in items if (i.index == index if name is None else
                                              i.said.get("id") == name)), None)
            need(item and index in (None, item.index), f"an event of no opened item: {name!r}")
            if family in FAMILIES:
                item.stream(family, event, step == "done")
            elif kind == "response.output_item.done":
                item.restate(made, "done")
            elif kind == "response.content_part.done" and part.get("type") in FAMILIES:
                item.stream(part["type"], event | part, final=True)
    need(kind == "response.completed", "the stream ended without response.completed")
    need(inner, "the terminal body states no ID")  # then nothing was compared
    output = typed(body.get("output"), list, "output")
    need(len(output) == len(items), "the terminal body lists more or fewer items")
    ran = [o.get("call_id") for o in output if o.get("type") == "shell_call_output"]
    for item, body in zip(sorted(items, key=lambda i: i.index), output, strict=True):
        item.restate(body, "end")
        name, call_id = body.get("name"), str(body.get("call_id"))
        hosted = item.kind in HOSTED | OWN and body.get("execution") != "client"
        if item.kind == "shell_call":  # with its output beside it, the provider ran it
            hosted = call_id in ran
        elif item.kind == "custom_tool_call":  # xAI's own x_search looks like this
            hosted = call_id.startswith("xs_call_") and all(t["name"] != name for t in tools)
        need(hosted, f"no gate for {item.kind}")  # unknown kinds too: who knows what they ask
        if item.kind == "function_call" and not item.by_program:  # else answered there
            text = item.texts.get((0, "function_call_arguments"), "")
            calls.append((item.said.get("call_id"), item.said.get("name"), whole(text)))
    return calls


def read_chat(events: list[Any], _tools: list[dict[str, Any]]) -> list:
    """Read OpenAI Chat to [DONE] or the end: a finish reason alone does not end the body."""
    calls: dict[Any, list[Any]] = {}  # index (or the ID, where a server sends none): ID, name, text
    opened = finish = None
    for chunk in events[:events.index("[DONE]")] if "[DONE]" in events else events:
        choice = (choices := typed(chunk, dict, "a chunk").get("choices") or [{}])[0]
        errors = chunk.get("error"), choice.get("error")
        need(chunk.get("object") != "error" and errors == (None, None), "an error")
        need(len(choices) == 1 and choice.get("index", 0) == 0, "several choices")
        delta, reason = choice.get("delta") or {}, choice.get("finish_reason") or None
        need(not delta.get("function_call"), "no gate for a call without an ID")
        parts = delta.get("tool_calls") or []
        adds = bool(parts or choice.get("text") or any(delta.get(key) for key in (
            "content", "refusal", "reasoning", "reasoning_content", "audio")))
        opened, chunk_id = opened or chunk.get("id"), chunk.get("id") or opened
        need(chunk_id == opened or not (adds or reason), "a chunk of another response's ID adds")
        need(finish is None or (not adds and reason in (None, finish)), f"more after {finish}")
        finish = finish or reason
        for part in parts:
            key, call_id, function = part.get("index"), part.get("id"), part.get("function") or {}
            need(part.get("type") in (None, "", "function"), f"no gate for {part.get('type')}")
            need(call_id if key is None else type(key) is int, "a fragment of no call: no index")
            if key is None:  # Mistral sends no index: then the ID itself is the key
                key = next((k for k, c in calls.items() if c[0] == call_id), call_id)
            call = calls.setdefault(key, [None, None, ""])
            for i, said in enumerate((call_id, function.get("name"))):
                need(not said or call[i] in (None, said), f"a call's ID or name changed: {said!r}")
                call[i] = call[i] or said
            text = function.get("arguments")
            call[2] += "" if text is None else typed(text, str, "arguments")
    # OpenAI documents `stop` beside a forced call; a `tool_calls` without a call promises one.
    need(finish == "stop" or (finish == "tool_calls" and calls), f"finish reason {finish!r}")
    rank = sorted(calls, key=lambda key: key if type(key) is int else MAX_CALLS)
    return [(calls[key][0], calls[key][1], whole(calls[key][2])) for key in rank]


# Anthropic Messages: the end of a block's type to which a delta belongs; blocks without a call.
DELTAS = {"text_delta": "text", "citations_delta": "text", "thinking_delta": "thinking",
          "signature_delta": "thinking", "input_json_delta": "tool_use"}
KINDS = [a + b for a in ("message_", "content_block_") for b in ("start", "delta", "stop")]
QUIET = {"text", "thinking", "redacted_thinking", "compaction", "fallback", "container_upload",
         "server_tool_use", "mcp_tool_use"}


def read_messages(events: list[Any], _tools: list[dict[str, Any]]) -> list:
    """Read to message_stop; stop reason tool_use and tool blocks come together or not at all."""
    blocks: dict[int, list[Any]] = {}  # index: the block, its input so far, whether it is open
    calls, started, stop, kind = [], False, None, None
    for event in events:
        kind, said = typed(typed(event, dict, "an event").get("type"), str, "type"), None
        need(kind != "error" and event.get("error") is None, "an error event")
        need(started is not (kind == "message_start") or kind not in KINDS, f"{kind} out of place")
        if kind == "message_start":
            started, body = True, typed(event.get("message"), dict, "message")
            blocks = {i: [block, "", False] for i, block in enumerate(body.get("content") or [])}
            said = body.get("stop_reason")
        elif kind == "message_delta":
            said = typed(event.get("delta"), dict, "delta").get("stop_reason")
        elif kind == "message_stop":
            break
        elif kind in KINDS:
            index = typed(event.get("index"), int, "index")
            block = blocks.get(index, [event.get("content_block"), "", False])
            need(stop is None, "the message goes on after its stop reason")
            need(block[2] if kind != "content_block_start" else index not in blocks,
                 f"{kind} of a block that is not open, or already known")
            blocks[index], block[2] = block, kind != "content_block_stop"
            if kind == "content_block_delta":
                delta, owner = typed(event.get("delta"), dict, "delta"), block[0]["type"]
                name = delta.get("type")
                need(owner.endswith(DELTAS[name]) if name in DELTAS else owner != "tool_use",
                     f"{name} inside a {owner} block")
                if name == "input_json_delta":
                    block[1] += typed(delta.get("partial_json"), str, "partial_json")
        need(said is None or stop in (None, said), f"{said} after {stop}")
        stop = stop or said
    need(kind == "message_stop", "the stream ended without message_stop")
    for _, (block, text, still_open) in sorted(blocks.items()):
        kind = typed(block.get("type"), str, "a block's type")
        need(not still_open, "a block was not closed")
        need(kind in {*QUIET, "tool_use"} or kind.endswith("_tool_result"), f"no gate for {kind}")
        if kind == "tool_use":  # no input at all is {}; told in two places, it is refused
            given = typed(block.get("input", {}), dict, "input")
            need(not (given and text), "input both in the block's start and in deltas")
            told = whole(text) or json.dumps(given, ensure_ascii=False)
            calls.append((block.get("id"), block.get("name"), told))
    # max_tokens, refusal, pause_turn, compaction and unknown reasons are refused with calls or not
    need((stop == "tool_use") if calls else stop in ("end_turn", "stop_sequence"), f"stop: {stop}")
    return calls
