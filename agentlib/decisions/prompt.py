"""A context packet as the messages and the tools of a Chat Completions request. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentlib.conversation import (
    Catalog,
    Entry,
    Message,
    ToolCall,
    ToolResult,
    assistant,
    system,
    user,
)
from agentlib.decisions.context import ASK_USER, FINAL_ANSWER, DecisionContext, Observation
from agentlib.decisions.model import AskUser, DecisionRetryNote, FinalAnswer
from agentlib.jsonvalues import FrozenObject, dumps
from agentlib.providers.chat_request import encode_request
from agentlib.providers.requests import MAX_OUTPUT_TOKENS

# What only a stream is asked, and what only a request with functions is asked.
STREAM_FIELDS = ("stream", "stream_options")
ONE_CALL = {"tool_choice": "required", "parallel_tool_calls": False}

NATIVE_CONTRACT = "Decide on exactly one next action: call exactly one function."
ENVELOPE_CONTRACT = """\
Decide on exactly one next action. Reply with one JSON object and nothing else, no fence and no \
prose around it: {"thought": "...", "action": ACTION}
ACTION is one of these:
{"kind": "tool", "name": "NAME", "input": {...}}
{"kind": "final_answer", "answer": "..."}
{"kind": "ask_user", "question": "..."}"""
NOBODY_THERE = "Nobody can be asked in this run: to ask the user ends it as blocked."


def build_messages(context: DecisionContext, *, native_tools: bool = False) -> list[dict[str, Any]]:
    """Return the request's messages, as plain JSON values.

    The protocol is one JSON object, which any server can carry: the tools and their schemas stand
    in the first message. With `native_tools` every action is a function call, and that contract is
    left out. Raises EncodingError for what the API cannot carry, such as an empty task.
    """
    return _messages(_history(context, native_tools=native_tools))


def build_tool_schemas(context: DecisionContext) -> list[dict[str, Any]]:
    """Return the request's functions: the admitted tools, `final_answer` and `ask_user`.

    Each tool carries the schema that pydantic makes of its input model.
    """
    catalog = context.catalog(native_tools=True)
    tools: list[dict[str, Any]] = encode_request("", [user("-")], catalog)["tools"]
    return tools


def build_request(
    model: str,
    context: DecisionContext,
    notes: Sequence[DecisionRetryNote] = (),
    *,
    native_tools: bool = True,
    stream: bool = True,
    max_output_tokens: int = MAX_OUTPUT_TOKENS,
) -> dict[str, Any]:
    """Return the body of one request; each of `notes` is a message of its own."""
    corrections = [user(tell(note, native_tools=native_tools)) for note in notes]
    request = encode_request(
        model,
        [*_history(context, native_tools=native_tools), *corrections],
        context.catalog(native_tools=native_tools),
        max_output_tokens=max_output_tokens,
    )
    if native_tools:
        request |= ONE_CALL
    if not stream:
        for name in STREAM_FIELDS:
            del request[name]
    return request


def tell(note: DecisionRetryNote, *, native_tools: bool) -> str:
    """Return the message to the model about a reply that was no decision."""
    again = NATIVE_CONTRACT if native_tools else ENVELOPE_CONTRACT.partition("\n")[0]
    lines = [
        "Your last reply was not one valid decision, and nothing of it was carried out.",
        f"Problem: {note.problem}",
        *([f"It began: {note.excerpt}"] if note.excerpt else []),
        again,
    ]
    return "\n".join(lines)


def _history(context: DecisionContext, *, native_tools: bool) -> list[Entry]:
    contract = [NATIVE_CONTRACT] if native_tools else [ENVELOPE_CONTRACT, *_listed(context)]
    if not context.interactive:
        contract.append(NOBODY_THERE)
    head = [part for part in (context.instructions, *contract) if part]
    encode = _native if native_tools else _enveloped
    numbered = enumerate(context.observations, 1)
    earlier = [entry for number, each in numbered for entry in encode(each, number)]
    return [system("\n\n".join(head)), user(context.task), *earlier]


def _listed(context: DecisionContext) -> Iterable[str]:
    if context.tools:
        specs = (tool.spec() for tool in context.tools)
        lines = (f"{s.name}: {s.description}\ninput: {dumps(s.parameters)}" for s in specs)
        yield "\n".join(["The tools:", *lines])


def _native(observation: Observation, number: int) -> tuple[Message, ToolResult]:
    action = observation.action
    if isinstance(action, AskUser):
        name, arguments = ASK_USER.name, FrozenObject({"question": action.question})
    elif isinstance(action, FinalAnswer):
        name, arguments = FINAL_ANSWER.name, FrozenObject({"answer": action.answer})
    else:
        name, arguments = action.name, action.input
    call = ToolCall(f"call_{number}", name, arguments)
    return assistant(observation.thought, [call]), ToolResult(call.call_id, observation.result)


def _enveloped(observation: Observation, _: int) -> tuple[Message, Message]:
    envelope = {"thought": observation.thought, "action": observation.action.model_dump()}
    return assistant(dumps(envelope)), user(f"Result: {observation.result}")


def _messages(history: Sequence[Entry]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = encode_request("", history, Catalog())["messages"]
    return messages
