"""The diagnoses of what the deltas are, of what is in the text, and of the usage."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from agentlib.inspection.diagnosis import Diagnosis
from agentlib.inspection.ends import Sight
from agentlib.inspection.fragments import by_key
from agentlib.inspection.observations import Seen, objects, record
from agentlib.inspection.servers import counted_across
from agentlib.jsonvalues import StrictJSONError, quote, strict_loads

# Shorter ones may look alike by chance.
_LONG_TEXT = 12
# How models write a call where no parser of their server takes it out of the text: Hermes and
# Qwen, Llama, Mistral, DeepSeek, and the forms in XML.
_LEAKED_CALL = re.compile(
    r"<tool_calls?>|<function=|<function_calls?>|<invoke name=|<\|?tool_call|<\|python_tag\|>"
    r"|\[TOOL_CALLS\]|<[|\uff5c]DSML|<[|\uff5c]tool\u2581calls?\u2581begin",
)


def no_deltas(seen: Seen) -> Sight:
    """Its text or its arguments come whole, and never in fragments."""
    if seen.is_chat:
        complete = [c for c in seen.choices if record(c.get("message")) and not c.get("delta")]
        return "a choice has a message and no delta" if complete else None
    if seen.is_messages:
        starts = [record(event.get("message")) for event in seen.of_kind("message_start")]
        blocks = [block for start in starts for block in objects(start.get("content"))]
        # A hosted program sends its further calls so.
        odd = any(not record(block.get("caller")) for block in blocks)
        return "message_start holds the content" if odd else None
    streamed = seen.streamed_keys
    whole_ones = (p.key for p in seen.restated if p.text and p.key not in streamed)
    key = next(whole_ones, None)
    if key is None or (key[1] != "arguments" and counted_across(seen) is not None):
        return None
    where, part = key
    what = "arguments" if part == "arguments" else "text"
    return f"the {what} of item {where} came whole"


def cumulative_deltas(seen: Seen) -> Sight:
    """Each delta repeats all before it, in a text or in a call's arguments."""
    for parts in by_key(seen, "text", "arguments").values():
        if len(parts) > 2 and len(parts[-1]) >= _LONG_TEXT and all(_grow(parts)):
            return f"{len(parts)} deltas, each of which begins with the one before"
    return None


def _grow(parts: Sequence[str]) -> Iterator[bool]:
    # A healthy stream is left at its second delta.
    for before, after in pairwise(parts):
        yield after.startswith(before) and len(after) > len(before)


def doubled_deltas(seen: Seen) -> Sight:
    """Each delta comes twice."""
    for parts in by_key(seen, "text", "arguments").values():
        pairs = zip(parts[::2], parts[1::2], strict=False)
        whole = len(parts) % 2 == 0 and len("".join(parts)) >= 2 * _LONG_TEXT
        if whole and all(first == again for first, again in pairs):
            return f"{len(parts)} deltas, and each comes twice"
    return None


def reversed_deltas(seen: Seen) -> Sight:
    """The fragments of a call's arguments make an object in the opposite order alone."""
    if seen.failure is None:
        return None
    for parts in by_key(seen, "arguments").values():
        if len(parts) > 1 and not _is_object("".join(parts)) and _is_object("".join(parts[::-1])):
            return f"{len(parts)} fragments make an object from the last to the first"
    return None


def _is_object(source: str) -> bool:
    try:
        return isinstance(strict_loads(source), dict)
    except StrictJSONError:
        return False


def call_in_text(seen: Seen) -> Sight:
    """What looks like a call stands in the text or the reasoning, and no call was made."""
    if seen.evidence.buffers:
        return None
    for (kind, _), parts in _with_kind(seen):
        found = _LEAKED_CALL.search("".join(parts))
        if found is not None:
            return f"its {kind} holds {quote(found[0])}"
    return None


def _with_kind(seen: Seen) -> Iterator[tuple[tuple[str, object], list[str]]]:
    for kind in ("text", "reasoning"):
        yield from (((kind, key), parts) for key, parts in by_key(seen, kind).items())


def usage_missing(seen: Seen) -> Sight:
    """It ends well, and does not report what it cost."""
    if not seen.has_ended or seen.errors or (seen.failure and not seen.is_chat):
        return None
    found = any(record(usage) for usage in _usages(seen))
    return None if found else "no event reports what was billed"


def _usages(seen: Seen) -> Iterator[object]:
    # From the end, where it stands nearly always: then no more of a long stream is looked at.
    for body in reversed(seen.bodies):
        yield body.get("usage")
    for event in reversed(seen.events):
        yield event.get("usage") or event.get("usageMetadata")
    for owner in ("message", "x_groq"):
        yield from (record(event[owner]).get("usage") for event in seen.events if owner in event)
    yield from (choice.get("usage") for choice in seen.choices)


def cumulative_usage(seen: Seen) -> Sight:
    """Every chunk reports the usage so far, and only the last one counts."""
    if not seen.is_chat:
        return None
    count = sum(1 for event in seen.events if record(event.get("usage")))
    return f"{count} chunks report it" if count > 1 else None


ROWS = (
    Diagnosis(
        "no-deltas",
        "No deltas",
        "A gateway that waits for the whole answer and then plays a stream, such as LM Studio "
        "for arguments.",
        "nothing is wrong, and nothing can be shown early; expect a long silence first",
        no_deltas,
        released=True,
    ),
    Diagnosis(
        "cumulative-deltas",
        "Each delta repeats all before it",
        "A server that sends the text so far instead of what is new.",
        "append nothing: ask its operator for true deltas, or take the last one alone",
        cumulative_deltas,
        released=True,
    ),
    Diagnosis(
        "doubled-deltas",
        "Each delta comes twice",
        "A gateway that forwards each event twice, or a client that reads one stream with two "
        "readers.",
        "append nothing: find who forwards twice, and stop it",
        doubled_deltas,
        released=True,
    ),
    Diagnosis(
        "reversed-deltas",
        "Fragments in the opposite order",
        "A server or a recorder that puts what is newest first.",
        "run nothing of it; ask its operator for the order in which the model wrote",
        reversed_deltas,
    ),
    Diagnosis(
        "call-in-text",
        "A call in the text",
        "Local servers without the parser of calls that this model needs, and gateways in front "
        "of them.",
        "run nothing of it, since it is text; turn on the server's parser of calls for this model",
        call_in_text,
        released=True,
    ),
    Diagnosis(
        "usage-missing",
        "Usage is missing",
        'Chat servers that were not asked (`"stream_options": {"include_usage": true}`), and '
        "gateways that drop it.",
        "ask for it in the request; until then no budget can count this response",
        usage_missing,
        released=True,
    ),
    Diagnosis(
        "cumulative-usage",
        "Usage in every chunk",
        "Servers such as Perplexity's and xAI's, which report the usage so far each time.",
        "take the last report; adding them up counts the same tokens many times",
        cumulative_usage,
        released=True,
    ),
)
