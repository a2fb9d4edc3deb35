"""The diagnoses of what is in the calls, and of what no other row explains."""

from __future__ import annotations

from collections.abc import Iterable

from agentlib.inspection.deltas import cumulative_deltas, doubled_deltas, reversed_deltas
from agentlib.inspection.diagnosis import Diagnosis
from agentlib.inspection.ends import Sight
from agentlib.inspection.observations import Seen, record
from agentlib.inspection.tried import NATIVE
from agentlib.jsonvalues import StrictJSONError, join_surrogates, quote, strict_loads

_DUPLICATE = "stands twice in one object"
_CUT = "it ends early"
_EMPTY = "it is empty"


def arguments_as_object(seen: Seen) -> Sight:
    """Arguments came as an object, where the API sends their text."""
    owners = [record(fragment.get("function")) for fragment in seen.call_fragments]
    owners += [item for item in seen.items if item.get("type") == "function_call"]
    owners += seen.of_kind("response.function_call_arguments.done")
    odd = any(isinstance(owner.get("arguments"), dict) for owner in owners)
    return "arguments are an object, and not its text" if odd else None


def _parsed(seen: Seen) -> Iterable[tuple[str, object]]:
    if not any(f.check == "strict_json" and f.status in ("pass", "fail") for f in seen.findings):
        return ()
    pairs = zip(seen.evidence.calls, seen.evidence.arguments, strict=True)
    return ((call.name, value) for call, value in pairs)


def double_encoded(seen: Seen) -> Sight:
    """Arguments are JSON text inside a JSON string."""
    for name, value in _parsed(seen):
        if isinstance(value, str):
            try:
                inner = strict_loads(join_surrogates(value))
            except StrictJSONError:
                continue
            if isinstance(inner, dict):
                return f"the arguments of {quote(name)} are a string that holds an object"
    return None


def duplicate_keys(seen: Seen) -> Sight:
    """One name stands twice in the arguments, and two readers would take two values."""
    for name, value in _parsed(seen):
        if isinstance(value, StrictJSONError) and _DUPLICATE in str(value):
            return f"arguments of {quote(name)}: {value}"
    return None


def empty_arguments(seen: Seen) -> Sight:
    """Arguments are empty or null, and nothing says whether the tool takes any."""
    if seen.evidence.catalog is not None:
        return None
    for name, value in _parsed(seen):
        if value is None or (isinstance(value, StrictJSONError) and str(value) == _EMPTY):
            what = "null" if value is None else "an empty text"
            return f"the arguments of {quote(name)} are {what}"
    return None


def cut_arguments(seen: Seen) -> Sight:
    """Arguments end in the middle, though the response says that it is complete."""
    if any(other(seen) for other in _OF_THE_DELTAS):
        return None
    for name, value in _parsed(seen):
        if isinstance(value, StrictJSONError) and str(value).startswith(_CUT):
            return f"arguments of {quote(name)}: {value}"
    return None


_OF_THE_DELTAS = (cumulative_deltas, doubled_deltas, reversed_deltas)
_OF_ARGUMENTS = (double_encoded, duplicate_keys, empty_arguments, cut_arguments)


def broken_arguments(seen: Seen) -> Sight:
    """Arguments are no JSON object, though the model was said to be done."""
    if any(other(seen) for other in (*_OF_THE_DELTAS, *_OF_ARGUMENTS)):
        return None
    for name, value in _parsed(seen):
        if isinstance(value, StrictJSONError):
            return f"arguments of {quote(name)}: {value}"
        if not isinstance(value, dict):
            return f"arguments of {quote(name)} are JSON, and no object"
    return None


def unknown_tool(seen: Seen) -> Sight:
    """A tool was called that the request did not expose."""
    return _detail(seen, "exposed")


def off_schema(seen: Seen) -> Sight:
    """Arguments are an object, and not the one that the schema asks for."""
    return _detail(seen, "schema")


def item_for_the_host(seen: Seen) -> Sight:
    """The provider asks the host for something that only it understands."""
    return None if NATIVE in seen.helps else _detail(seen, "replayable")


def not_portable(seen: Seen) -> Sight:
    """The portable form was asked for, and only the native one can carry what came."""
    return _detail(seen, "replayable") if NATIVE in seen.helps else None


def over_the_limits(seen: Seen) -> Sight:
    """It is longer than a response may be."""
    return _detail(seen, "limits")


def _detail(seen: Seen, check: str) -> Sight:
    return next((f.detail for f in seen.findings if f.check == check and f.status == "fail"), None)


def end_disagrees(seen: Seen) -> Sight:
    """The end of the response disagrees with what was streamed."""
    later = {"completed", "response_id", "texts_equal", "calls_equal"}
    later |= {"none_omitted", "none_invented", "call_ids"}
    return seen.failure.reason if seen.failure is not None and seen.check in later else None


def against_the_rules(seen: Seen) -> Sight:
    """Its events break the rules of their API in a way without a name of its own."""
    return seen.failure.reason if seen.failure is not None else None


ROWS = (
    Diagnosis(
        "arguments-as-object",
        "Arguments as an object",
        "Local servers that send parsed arguments where the API has their JSON text.",
        "ask its operator; what the model wrote can no longer be checked",
        arguments_as_object,
    ),
    Diagnosis(
        "double-encoded-arguments",
        "Arguments encoded twice",
        "A gateway that encodes arguments which were JSON text already, or a small model.",
        "find who encodes twice, and stop it; do not decode twice on suspicion",
        double_encoded,
    ),
    Diagnosis(
        "duplicate-keys",
        "One name twice in the arguments",
        "A small model, or a gateway that merges fragments of two calls.",
        "tell the model which name stood twice, and let it call again",
        duplicate_keys,
    ),
    Diagnosis(
        "empty-arguments",
        "Empty arguments, and no catalog",
        "A model that calls a tool without parameters; its server sends an empty text, or null.",
        "name the request's tools with --tools: where the tool takes nothing, it is released",
        empty_arguments,
    ),
    Diagnosis(
        "cut-arguments",
        "Arguments that end in the middle",
        "A server whose limit cuts what the model writes, often a large file, and that says "
        "`stop` or `tool_calls` all the same.",
        "take it as a cut: raise the limit, or ask for smaller pieces; the same request is cut "
        "again",
        cut_arguments,
    ),
    Diagnosis(
        "broken-arguments",
        "Arguments that are no JSON object",
        "A small model, or a parser that drops characters.",
        "tell the model what is wrong, and let it call again; ask for strict schemas",
        broken_arguments,
    ),
    Diagnosis(
        "arguments-off-schema",
        "Arguments that the schema refuses",
        "A model without strict schemas, or a schema that the server changed on its way.",
        "tell the model what the schema says, and let it call again; ask for strict schemas",
        off_schema,
    ),
    Diagnosis(
        "unknown-tool",
        "A tool that was not exposed",
        "A model that remembers a tool from its training or from earlier in the talk, or a "
        "gateway that renames tools.",
        "compare the name with the request's; tell the model which tools there are",
        unknown_tool,
    ),
    Diagnosis(
        "not-portable",
        "An item that the portable form cannot carry",
        "Every provider with reasoning or hosted tools, where `--portable` was asked for.",
        "leave --portable out: the native form sends it back as it came",
        not_portable,
    ),
    Diagnosis(
        "item-for-the-host",
        "An item that asks the host to act",
        "A provider whose built-in tools were turned on: a shell, a patch, an approval.",
        "turn that tool off in the request, or write its handler yourself",
        item_for_the_host,
    ),
    Diagnosis(
        "over-the-limits",
        "Longer than a response may be",
        "A model that repeats itself without end, or that asks for everything at once.",
        "look at what it repeats or asks for, before you raise the limit",
        over_the_limits,
    ),
    Diagnosis(
        "end-disagrees",
        "The end disagrees with the stream",
        "A gateway that composes the last event from something other than what it streamed.",
        "believe neither; report the two texts to its operator",
        end_disagrees,
        last=True,
    ),
    Diagnosis(
        "against-the-rules",
        "Against the rules of its API",
        "A server that copies the API, or a recording in which events were lost or moved.",
        "step to the event that the gate names, and compare it with the API's reference",
        against_the_rules,
        last=True,
    ),
)
