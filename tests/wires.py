"""Chat and Messages streams, event by event, and a reader that tells what came of them."""

from dataclasses import dataclass

from agentlib import Catalog, ResponseFailure, ResponseReader, ToolSpec
from agentlib.sse import DONE_EVENT

READ_FILE = ToolSpec.strings("read_file", "Read a file.", path="The file's path.")
READ = ToolSpec.strings("read", "Read a page.", path="Its path.")
RUN_TESTS = ToolSpec.strings("run_tests", "Run the tests.")
TOOLS = Catalog([READ_FILE, RUN_TESTS])
ARGUMENTS = '{"path": "src/app.py"}'


@dataclass
class Outcome:
    """What came of a stream: exactly one of `decision` and `failure`."""

    decision: object
    failure: ResponseFailure | None
    reader: ResponseReader

    @property
    def calls(self):
        return [(c.call_id, c.name, dict(c.arguments)) for c in self.decision.calls]


def read(provider, events, catalog=TOOLS, *, done=True, native=False, compat=(), report=None):
    """Read every event, and then the end of the stream; `done` is whether it said [DONE]."""
    reader = ResponseReader(provider, catalog, report=report, native=native, compat=compat)
    decision = None
    try:
        for event in events:
            decision = reader.accept(event) or decision
        if done:
            reader.accept(DONE_EVENT)
        decision = reader.end() or decision
    except ResponseFailure as failure:
        assert decision is None
        assert reader.assembly.decision is None
        return Outcome(None, failure, reader)
    assert decision is not None
    return Outcome(decision, None, reader)


def released(provider, events, *args, **options):
    """Return the outcome of a stream that must be released."""
    outcome = read(provider, events, *args, **options)
    assert outcome.failure is None, f"rejected: {outcome.failure}"
    return outcome


def rejected(provider, events, *args, **options):
    """Return the failure of a stream that must release nothing."""
    outcome = read(provider, events, *args, **options)
    assert outcome.decision is None, f"released: {outcome.decision}"
    return outcome.failure


# --------------------------------------------------------------------------------------- Chat


def chunk(delta=None, reason=None, **fields):
    """One chunk with one choice."""
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": reason}
    made = {"id": "chat_1", "object": "chat.completion.chunk", "choices": [choice]}
    return {**made, **fields}


def text(content):
    return chunk({"content": content})


def fragment(call_id=None, name=None, arguments=None, index=0):
    """One fragment of a call; what is None is not there."""
    function = {"name": name, "arguments": arguments}
    function = {key: value for key, value in function.items() if value is not None}
    made = {"index": index, "id": call_id, "type": "function" if call_id else None}
    made = {key: value for key, value in made.items() if value is not None}
    return {**made, "function": function}


def call(*args, **fields):
    """One chunk with one fragment of a call."""
    return chunk({"tool_calls": [fragment(*args, **fields)]})


def usage_chunk(prompt=120, completion=30, cached=None, reasoning=None):
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    if reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return {"id": "chat_1", "object": "chat.completion.chunk", "choices": [], "usage": usage}


END = chunk(reason="tool_calls")
STOP = chunk(reason="stop")


def one_call(reason="tool_calls"):
    """A call in fragments, as the API itself sends it."""
    pieces = [ARGUMENTS[at : at + 6] for at in range(0, len(ARGUMENTS), 6)]
    return [
        chunk({"role": "assistant", "content": None}),
        call("call_a", "read_file", ""),
        *(call(arguments=piece) for piece in pieces),
        chunk(reason=reason),
    ]


# ----------------------------------------------------------------------------------- Messages


def message_start(message_id="msg_1", usage=None, **fields):
    usage = {"input_tokens": 120, "output_tokens": 1} if usage is None else usage
    message = {"id": message_id, "type": "message", "role": "assistant", "content": []}
    return {"type": "message_start", "message": {**message, "usage": usage, **fields}}


def block(index, content, *deltas, stop=True):
    """A block of content with its deltas."""
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        *([{"type": "content_block_stop", "index": index}] if stop else []),
    ]


def text_block(index, *pieces):
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": ""}, *deltas)


def tool_block(index, call_id, name, *pieces, **options):
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    content = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return block(index, content, *deltas, **options)


def message_end(reason, usage=None):
    usage = {"output_tokens": 30} if usage is None else usage
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": usage},
        {"type": "message_stop"},
    ]


def one_tool(reason="tool_use"):
    """A message with a text and a call."""
    return [
        message_start(),
        *text_block(0, "Looking", " at it."),
        *tool_block(1, "toolu_a", "read_file", "", ARGUMENTS[:9], ARGUMENTS[9:]),
        *message_end(reason),
    ]
