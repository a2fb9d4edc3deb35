"""The diagnoses of how a server keeps to its API: what it opens, names, counts and restates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from agentlib.inspection.diagnosis import Diagnosis
from agentlib.inspection.ends import Sight, glued_responses
from agentlib.inspection.observations import Native, Seen, objects, record, text, whole
from agentlib.jsonvalues import quote, same_text
from agentlib.providers.finish_reasons import COMPLETING
from agentlib.wording import plural


def resumed_stream(seen: Seen) -> Sight:
    """It begins in the middle of its own count, as a stream does that is asked to go on."""
    if not seen.is_responses or seen.failure is None or seen.of_kind("response.created"):
        return None
    first = next(iter(_meant(seen)), None)
    number = whole(first.get("sequence_number")) if first is not None else None
    if not number or "missing-opening" in seen.helps:
        return None
    return f"its first sequence number is {number}"


def missing_opening(seen: Seen) -> Sight:
    """No event opens the response, or names it."""
    if seen.errors or not any(_meant(seen)) or resumed_stream(seen) is not None:
        return None
    if seen.is_chat or seen.is_gemini:
        key = "id" if seen.is_chat else "responseId"
        named = any(text(event.get(key)) for event in seen.events)
        return None if named else "no chunk has an ID of the response"
    kind = "response.created" if seen.is_responses else "message_start"
    first = next(iter(_meant(seen)))
    if first.get("type") in (kind, "response.queued"):
        return None
    return f"it begins with {quote(first.get('type'))}"


def _meant(seen: Seen) -> Iterable[Native]:
    wanted = ("message_", "content_block_") if seen.is_messages else "response."
    own = (e for e in seen.events if text(e.get("type")).startswith(wanted))
    return seen.events if seen.is_chat or seen.is_gemini else own


_NAME_THEIR_ITEM = tuple(
    f"response.{kind}."
    for kind in ("output_item", "content_part", "output_text", "function_call_arguments")
)


def rotating_item_ids(seen: Seen) -> Sight:
    """An item has another ID on each event, or none."""
    if not seen.is_responses:
        return None
    names: defaultdict[int, set[str]] = defaultdict(set)
    begun: Counter[int] = Counter()
    for event in seen.events:
        index = event.get("output_index")
        if isinstance(index, int) and text(event.get("type")).startswith(_NAME_THEIR_ITEM):
            begun[index] += event.get("type") == "response.output_item.added"
            own = event.get("item_id", record(event.get("item")).get("id"))
            names[index].add(text(own))
    for index, ids in names.items():
        if begun[index] <= 1 and (len(ids) > 1 or ids == {""}):
            several = plural(len(ids), "different ID") if "" not in ids else "no ID on some events"
            return f"item {index} has {several}"
    for index, item_id in _restated_ids(seen, len(names)):
        if item_id not in names.get(index, {item_id}):
            return f"item {index} ends with another ID"
    return None


def _restated_ids(seen: Seen, count: int) -> Iterable[tuple[int, str]]:
    # Only an output as long as what was streamed has each item in its own place.
    for event in seen.of_kind("response.completed"):
        output = objects(record(event.get("response")).get("output"))
        if len(output) == count and seen.failure is not None:
            yield from ((index, text(item.get("id"))) for index, item in enumerate(output))


def index_always_zero(seen: Seen) -> Sight:
    """Two calls, blocks or items stand at the same index."""
    if seen.is_chat:
        places = _begun(seen)
    elif seen.is_messages:
        starts = seen.of_kind("content_block_start")
        places = [(whole(event.get("index")), str(number)) for number, event in enumerate(starts)]
    else:
        added = seen.of_kind("response.output_item.added")
        places = [(whole(event.get("output_index")), str(n)) for n, event in enumerate(added)]
    counts = Counter(index for index, _ in dict.fromkeys(places) if index is not None)
    twice = [index for index, count in counts.items() if count > 1]
    if not twice or (seen.is_messages and glued_responses(seen) is not None):
        return None
    return f"{counts[twice[0]]} stand at index {twice[0]}"


def unknown_index(seen: Seen) -> Sight:
    """A fragment belongs to an index at which no call or block began."""
    begun: set[object] = set()
    if seen.is_messages:
        for event in seen.events:
            if event.get("type") == "content_block_start":
                begun.add(event.get("index"))
            elif event.get("type") == "content_block_delta" and event.get("index") not in begun:
                return f"a delta for block {quote(event.get('index'))}, which never started"
        return None
    for fragment in seen.call_fragments:
        index, function = fragment.get("index"), record(fragment.get("function"))
        if text(fragment.get("id")) or text(function.get("name")):
            begun.add(index)
        elif index not in begun:
            return f"a fragment at index {quote(index)}, where no call began"
    return None


def call_without_id(seen: Seen) -> Sight:
    """A call has no ID that a result could name."""
    if seen.is_chat:
        known: set[object] = set()
        for fragment in seen.call_fragments:
            index = whole(fragment.get("index"))
            if text(fragment.get("id")):
                known.add(index)
            elif index not in known and record(fragment.get("function")).get("name"):
                return f"the call of {quote(record(fragment['function']).get('name'))}"
        return None
    name, owners = ("call_id", seen.items) if seen.is_responses else ("id", _blocks(seen))
    calls = (each for each in owners if each.get("type") in ("function_call", "tool_use"))
    bare = next((call for call in calls if not text(call.get(name))), None)
    return f"the call of {quote(bare.get('name'))}" if bare is not None else None


def _begun(seen: Seen) -> list[tuple[int | None, str]]:
    named = (fragment for fragment in seen.call_fragments if text(fragment.get("id")))
    return [(whole(fragment.get("index")), text(fragment.get("id"))) for fragment in named]


def _blocks(seen: Seen) -> tuple[Native, ...]:
    return tuple(record(e.get("content_block")) for e in seen.of_kind("content_block_start"))


def duplicate_call_id(seen: Seen) -> Sight:
    """Two calls have the same ID."""
    ids: list[str] = []
    if seen.is_chat:
        ids = [call_id for _, call_id in set(_begun(seen))]
    elif seen.is_messages:
        ids = [text(b.get("id")) for b in _blocks(seen) if b.get("type") == "tool_use"]
    else:
        for event in seen.of_kind("response.output_item.added"):
            item = record(event.get("item"))
            if item.get("type") == "function_call":
                ids.append(text(item.get("call_id")))
    twice = [call_id for call_id, count in Counter(ids).items() if call_id and count > 1]
    return f"call ID {quote(twice[0])} stands twice" if twice else None


def several_choices(seen: Seen) -> Sight:
    """The request asked for more than one choice, and one answer holds them all."""
    counts = [choice.get("index") for choice in seen.choices]
    indexes = {whole(index) for index in counts} - {None, 0}
    if not seen.is_chat or seen.failure is None or not indexes:
        return None
    return f"its chunks hold choice 0 and {plural(len(indexes), 'further one')}"


def early_finish_reason(seen: Seen) -> Sight:
    """A finish reason stands on a call or a text, and more comes after it."""
    if not seen.is_chat or seen.failure is None or several_choices(seen) is not None:
        return None
    reasons: list[str] = []
    more = False
    for choice in seen.choices:
        delta = record(choice.get("delta"))
        says = any(value for name, value in delta.items() if name != "role")
        more = more or bool(reasons and says)
        reasons += filter(None, [text(choice.get("finish_reason"))])
    completes = all(reason in COMPLETING["chat"] for reason in reasons)
    if not (more or len(set(reasons)) > 1) or not completes:
        return None
    return f"after finish reason {quote(reasons[0])} it goes on"


def missing_finish_reason(seen: Seen) -> Sight:
    """It ends with [DONE], without a reason."""
    ended = seen.is_chat and seen.response.done_marker and not seen.stop and not seen.errors
    return "it says [DONE], and no chunk has a finish reason" if ended and seen.choices else None


def nothing_restated(seen: Seen) -> Sight:
    """Its last event, which should restate everything, restates nothing."""
    ends = [record(event.get("response")) for event in seen.of_kind("response.completed")]
    begun = seen.of_kind("response.output_item.added", "response.output_item.done")
    empty = begun and ends and not objects(ends[-1].get("output"))
    return "response.completed has no output" if empty else None


def corrected_by_done(seen: Seen) -> Sight:
    """What restates the deltas is another text."""
    if not seen.is_responses or resumed_stream(seen) is not None:
        return None
    streamed: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
    for piece in seen.pieces:
        if not piece.restated:
            streamed[piece.key].append(piece.text)
        elif piece.key in streamed and not same_text("".join(streamed[piece.key]), piece.text):
            where, part = piece.key
            what = "as arguments" if part == "arguments" else "as text"
            return f"what item {where} streams {what} is not what it restates"
    return None


def content_index_across_items(seen: Seen) -> Sight:
    """The content of an item is counted on from the item before, and not from 0."""
    return counted_across(seen) if seen.failure is not None else None


def counted_across(seen: Seen) -> Sight:
    """Say which text is counted on from another item, whether it was refused for that or not."""
    first: dict[str, int] = {}
    for event in seen.of_kind("response.output_text.delta"):
        index = whole(event.get("content_index"))
        if index is not None:
            first.setdefault(text(event.get("item_id")), index)
    item, index = next(((i, n) for i, n in first.items() if n > 0), ("", 0))
    return f"the first text of item {quote(item)} has content_index {index}" if index else None


def whole_input(seen: Seen) -> Sight:
    """The input of the model's own call stands whole in the start of its block."""
    if seen.failure is None:
        return None
    for block in _blocks(seen):
        own = block.get("type") == "tool_use" and not record(block.get("caller"))
        if own and record(block.get("input")):
            return f"the input of {quote(block.get('name'))} came whole"
    return None


ROWS = (
    Diagnosis(
        "resumed-stream",
        "It continues an earlier stream",
        "A background response that is read on with `starting_after`, or a recording that was "
        "begun too late.",
        "read it after the events that it continues: alone it cannot be judged",
        resumed_stream,
    ),
    Diagnosis(
        "missing-opening",
        "It never opened",
        "A server that copies the API without its first event or the response's ID, or a "
        "recording that was begun too late.",
        "read it with --compat missing-opening, or record from the first byte",
        missing_opening,
        flag="missing-opening",
    ),
    Diagnosis(
        "rotating-item-ids",
        "Item IDs that change or are missing",
        "A gateway that encrypts IDs anew on each event, such as GitHub Copilot; local servers "
        "that send none.",
        "read it with --compat rotating-ids",
        rotating_item_ids,
        flag="rotating-ids",
    ),
    Diagnosis(
        "index-always-zero",
        "Several at one index",
        "A server that copies the API and streams one call at a time, each at index 0.",
        "tell calls apart by their call IDs, never by the index; report it to its operator",
        index_always_zero,
        released=True,
    ),
    Diagnosis(
        "unknown-index",
        "A fragment that belongs nowhere",
        "A server that counts calls or blocks in one way where they begin, and in another where "
        "they go on; or a recording in which a start was lost.",
        "run nothing of it; report the index to its operator",
        unknown_index,
    ),
    Diagnosis(
        "call-without-id",
        "Calls without an ID",
        "Local servers, and gateways in front of models whose API has no call IDs.",
        "read it with --compat call-without-id, and send the made-up ID back",
        call_without_id,
        flag="call-without-id",
    ),
    Diagnosis(
        "duplicate-call-id",
        "One ID for two calls",
        "A server that makes IDs from the tool's name, or counts anew for each call.",
        "run neither call: no result could be matched; report it to its operator",
        duplicate_call_id,
    ),
    Diagnosis(
        "several-choices",
        "Several choices in one stream",
        "A request with `n` above 1: the chunks of all choices come in one stream.",
        "ask for one choice, or take each choice apart by its index and judge it for itself",
        several_choices,
    ),
    Diagnosis(
        "early-finish-reason",
        "It says that it is done, and goes on",
        "Together, and OpenRouter in front of Gemini, which put a finish reason on each call.",
        "read it with --compat early-finish-reason",
        early_finish_reason,
        flag="early-finish-reason",
        otherwise="run nothing of it: what came after the reason may change what came before",
    ),
    Diagnosis(
        "missing-finish-reason",
        "It says [DONE], and not why",
        "Gateways in front of Gemini, and servers of one's own that copy the API.",
        "read it with --compat done-without-reason",
        missing_finish_reason,
        flag="done-without-reason",
        otherwise="run nothing of it: a server that was cut says the same; ask its operator for a "
        "finish reason",
    ),
    Diagnosis(
        "nothing-restated",
        "Nothing restated at the end",
        "ChatGPT's Codex backend, and gateways that translate from another API.",
        "read it with --compat terminal-restates-nothing",
        nothing_restated,
        flag="terminal-restates-nothing",
    ),
    Diagnosis(
        "corrected-by-done",
        "The restatement is another text",
        "A server whose parser holds back the last fragments, or a proxy that rewrites one and "
        "not the other.",
        "find out which text is meant; --compat corrected-by-done takes the later one",
        corrected_by_done,
        flag="corrected-by-done",
    ),
    Diagnosis(
        "content-index-across-items",
        "Contents counted across items",
        "vLLM, where a model's reasoning comes first, and Amazon Bedrock.",
        "read it with --compat content-index-across-items",
        content_index_across_items,
        flag="content-index-across-items",
    ),
    Diagnosis(
        "whole-input",
        "A call's input whole at its start",
        "Gateways that translate another API's calls into Anthropic Messages.",
        "read it with --compat whole-input",
        whole_input,
        flag="whole-input",
    ),
)
