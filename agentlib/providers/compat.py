"""Real servers break the rules in known ways. Each way is one named flag, off by default.

A flag is a filter around a provider's translator: it puts right what the server leaves out or
gets wrong, and says in a note that it did. The translator, the assembly and the gate stay as
strict as they are. No flag makes up an end: a response that was cut, failed or is incomplete
releases nothing under any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from agentlib.errors import UnknownFlag
from agentlib.providers import compat_chat as chat
from agentlib.providers import compat_gemini as gemini
from agentlib.providers import compat_messages as messages
from agentlib.providers import compat_responses as responses
from agentlib.providers.translator import Filter, Note, Translator


class Flag(NamedTuple):
    """One way in which servers break the rules, and what tolerating it costs.

    `does` says what such a server does and `seen` who was seen doing it. `checks` names the
    checks of the gate that see less, `relaxes` says how, and `protects` what still stands.
    `filters` has the filter for each provider that the flag is for. One `of_recordings` is for
    any, and no filter of events: who reads the recording does it.
    """

    name: str
    does: str
    seen: str
    checks: tuple[str, ...]
    relaxes: str
    protects: str
    filters: dict[str, Callable[[Translator, Note], Filter]]
    of_recordings: bool = False


# In the order in which they stand around a translator, the outermost first: what is rebuilt is
# rebuilt from what came, and what is corrected is corrected last.
_TABLE = (
    Flag(
        name="corrected-by-done",
        does="its deltas are not what it means; what restates them later is",
        seen="vLLM until June 2026, whose parser kept the last fragments of a call for its done; "
        "gateways whose deltas hold {} and whose item holds the arguments, or whose text's done "
        "is always empty",
        checks=("lifecycle", "texts_equal", "calls_equal"),
        relaxes="the later authority wins: the terminal event, before the item's done, before the "
        "arguments' done, before the deltas",
        protects="every difference is a note; names, IDs, the number of calls and the status are "
        "still compared, and the corrected arguments pass every check of arguments",
        filters={"responses": responses.CorrectedByDone},
    ),
    Flag(
        name="other-finish-words",
        does="its finish reason is another API's, or its engine's own",
        seen="Text Generation Inference and Together (eos, eos_token), gateways in front of "
        "Anthropic (end_turn, tool_use), Gemini (STOP) or Cohere (COMPLETE)",
        checks=("completed",),
        relaxes="a word of a short list stands for stop or tool_calls",
        protects="a word that is not in the list still completes nothing, nor does one that says "
        "length, a filter or an error",
        filters={"chat": chat.OtherFinishWords},
    ),
    Flag(
        name="whole-input",
        does="the input of a call stands whole in the start of its block",
        seen="gateways that translate another API's calls into Messages",
        checks=("lifecycle",),
        relaxes="the input in the start is taken as the call's one fragment",
        protects="a fragment after it makes no JSON, and is refused; the block still has to be "
        "closed, and the message to end with a stop reason that agrees",
        filters={"messages": messages.WholeInput},
    ),
    Flag(
        name="missing-last-blank-line",
        does="a recording of it ends without the blank line after its last event",
        seen="editors, formatters and test tools that strip the end of a text",
        checks=("completed",),
        relaxes="the last event is read though the standard drops it",
        protects="its JSON must be whole, and the response still ends by its own event",
        filters={},
        of_recordings=True,
    ),
    Flag(
        name="missing-opening",
        does="it never says response.created, or no chunk of it has a response ID",
        seen="OpenVINO Model Server, Text Generation Inference (Chat); OpenAI's o1-pro in March "
        "2025 (Responses), where response.completed came alone: that stays refused, since "
        "nothing of it was streamed",
        checks=("opened",),
        relaxes="a local response ID is made, which no request can continue from",
        protects="a second opening, a later ID that changes, and everything else is still refused",
        filters={
            "responses": responses.MissingOpening,
            "chat": chat.MissingOpening,
            "gemini": gemini.MissingOpening,
        },
    ),
    Flag(
        name="terminal-restates-nothing",
        does="its response.completed has an empty output, or none",
        seen="ChatGPT's Codex backend since April 2026; gateways that translate another API",
        checks=("texts_equal", "calls_equal", "none_omitted"),
        relaxes="the output is rebuilt from response.output_item.done: one restatement less",
        protects="every item has to be done and completed, and equal to its deltas; an output "
        "that has one item is taken at its word",
        filters={"responses": responses.TerminalRestatesNothing},
    ),
    Flag(
        name="rotating-ids",
        does="its item IDs, or its response ID, change on every event, or item IDs are absent",
        seen="GitHub Copilot, which encrypts them anew each time; llama.cpp until June 2026 (no "
        "ID on a function call)",
        checks=("lifecycle", "response_id", "calls_equal"),
        relaxes="an event's output_index says to which item it belongs (Responses); two responses "
        "in one stream are taken for one (Chat)",
        protects="an output_index must be there and known; the call ID is still the key of a "
        "call, and every restatement is still compared",
        filters={"responses": responses.RotatingIDs, "chat": chat.RotatingIDs},
    ),
    Flag(
        name="content-index-across-items",
        does="its content_index is counted on from one item to the next",
        seen="vLLM where the reasoning comes first, Amazon Bedrock",
        checks=("texts_equal",),
        relaxes="the contents of an item are counted from 0, in the order in which they begin",
        protects="each text is still compared with each of its restatements, and a content out of "
        "order is still refused",
        filters={"responses": responses.ContentIndexAcrossItems},
    ),
    Flag(
        name="call-without-id",
        does="it sends calls without a call ID",
        seen="Ollama, StepFun's router, gateways in front of Gemini (Chat)",
        checks=("call_ids",),
        relaxes="a local call ID is made, and its prefix and a note mark it as synthetic",
        protects="a call needs a name to begin; a fragment without index, ID and name belongs "
        "nowhere; a server that uses the prefix itself is refused",
        filters={"responses": responses.CallWithoutID, "chat": chat.CallWithoutID},
    ),
    Flag(
        name="early-finish-reason",
        does="a finish reason stands on each call or text, and more comes after it",
        seen="Together, OpenRouter in front of Gemini",
        checks=("lifecycle", "completed"),
        relaxes="the finish reason counts only at the end; where more came after it, at [DONE]",
        protects="a further reason and [DONE] must come where more came after a reason; one among "
        "them that completes nothing counts before all others",
        filters={"chat": chat.EarlyFinishReason},
    ),
    Flag(
        name="done-without-reason",
        does="its finish reason is null to the end, and then it says [DONE]",
        seen="gateways in front of Gemini, and servers of one's own that copy the API",
        checks=("completed",),
        relaxes="[DONE] stands for a finish reason: a server that says it in spite of a failure "
        "is believed",
        protects="[DONE] itself must have come; an error, length or content_filter before it "
        "still completes nothing, and each call's arguments must be whole JSON by its schema",
        filters={"chat": chat.DoneWithoutReason},
    ),
    Flag(
        name="unended-call",
        does="its finish reason is STOP while its last call says that it will continue",
        seen="Gemini with streamed function call arguments; gateways that drop parts without "
        "content, as the end of a call is one",
        checks=("lifecycle",),
        relaxes="the call is ended where it has each argument that its tool takes, the last one "
        "no object or array: then nothing of it can still come",
        protects="without the tool's schema, or with an argument left or a string that goes on, "
        "the call may be cut, and stays refused; so does any other finish reason",
        # The last row stands innermost, next to the translator, as this one has to.
        filters={"gemini": gemini.UnendedCall},
    ),
)

FLAGS: dict[str, Flag] = {flag.name: flag for flag in _TABLE}


def check_flags(names: Iterable[str]) -> frozenset[str]:
    """Return the flags of these names. Raises UnknownFlag, which lists those known."""
    flags = frozenset(names)
    for name in sorted(flags - set(FLAGS)):
        raise UnknownFlag(f"unknown compat flag {name!r}; known are: {', '.join(FLAGS)}")
    return flags


def flags_for(provider: str) -> tuple[str, ...]:
    """Return the names of the flags that change anything for this provider."""
    return tuple(f.name for f in _TABLE if f.of_recordings or provider in f.filters)


def tolerant(
    translator: Translator, provider: str, flags: frozenset[str], note: Note
) -> Translator:
    """Return `translator` with the filters of `flags` around it. Raises UnknownFlag.

    `note` is told what a filter did. A flag that is not for this provider does nothing.
    """
    check_flags(flags)
    for flag in reversed(_TABLE):
        make = flag.filters.get(provider)
        if flag.name in flags and make is not None:
            translator = make(translator, note)
    return translator
