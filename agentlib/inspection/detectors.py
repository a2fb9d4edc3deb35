"""The detectors of the diagnoses: each looks at one response, and returns what it sees or None.

A detector is a pure function of what was seen. It looks for the one thing that it is named for,
so that a healthy stream meets none of them, and describes it in a few words for a reader.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from agentlib.inspection.observations import Native, Seen, objects, record, text, whole
from agentlib.jsonvalues import StrictJSONError, join_surrogates, quote, same_text, strict_loads
from agentlib.recordings.capture import CUT_BY_NEXT
from agentlib.wording import plural

Sight = str | None
SHORT = frozenset(
    (
        *("length", "content_filter", "max_tokens", "max_output_tokens", "refusal"),
        *("pause_turn", "model_context_window_exceeded"),
    )
)
NO_STREAM = ("this is ", "these are ", "binary data", "the file ")
KEEP_ALIVES = frozenset(("ping", "keepalive", "keep-alive", "heartbeat"))
# Shorter ones may look alike by chance.
_LONG_TEXT = 12
_DUPLICATE = "stands twice in one object"


# ------------------------------------------------------------------------------ what came at all


def no_stream(seen: Seen) -> Sight:
    """Something else than a stream came: a page, an error body, a whole response."""
    fault = seen.response.fault or ""
    return fault if not seen.events and fault.startswith(NO_STREAM) else None


def broken_event(seen: Seen) -> Sight:
    """An event cannot be read, so that nothing after it counts."""
    fault = seen.response.fault
    if fault is None or no_stream(seen) is not None:
        return None
    return f"event {len(seen.events) + 1}: {fault}"


def keep_alives_only(seen: Seen) -> Sight:
    """The connection was held open, and nothing else came."""
    others = (e for e in seen.events if text(e.get("type")) not in KEEP_ALIVES)
    if any(True for _ in others) or seen.response.fault is not None:
        return None
    return f"{plural(len(seen.events), 'event')}, and none says anything"


def error_in_the_stream(seen: Seen) -> Sight:
    """An error came as an event, after a status of success."""
    if not seen.errors:
        return None
    error = seen.errors[0]
    return f"it says {quote(error.get('message') or error.get('code') or error.get('type'))}"


def failed_midway(seen: Seen) -> Sight:
    """The provider itself gave up."""
    if not seen.of_kind("response.failed"):
        return None
    errors = (record(body.get("error")) for body in seen.bodies)
    error: Native = next((each for each in errors if each), {})
    return f"response.failed: {quote(error.get('message') or error.get('code') or 'no reason')}"


def stopped_short(seen: Seen) -> Sight:
    """The model was stopped before it was done."""
    short = seen.stop in SHORT or bool(seen.of_kind("response.incomplete"))
    return f"it stopped for {quote(seen.stop or 'no reason')}" if short else None


def cut_stream(seen: Seen) -> Sight:
    """The connection ended in the middle: no event of the provider ends the response."""
    ended = seen.has_ended or seen.response.done_marker or seen.errors or seen.response.fault
    if ended or glued_responses(seen) is not None or keep_alives_only(seen) is not None:
        return None
    return f"it ends after event {len(seen.events)}, and none of them is its end"


def glued_responses(seen: Seen) -> Sight:
    """A second response begins inside the first."""
    openings = len(seen.of_kind("response.created", "message_start"))
    if openings > 1:
        return f"it opens {openings} times"
    return CUT_BY_NEXT if CUT_BY_NEXT in seen.response.notes else None


def sent_after_the_end(seen: Seen) -> Sight:
    """More came after the end, and nobody may read it."""
    if seen.failure is not None or not seen.unread:
        return None
    return f"{plural(seen.unread, 'event')} after the end"


# ----------------------------------------------------------------- how the server keeps to its API


def missing_opening(seen: Seen) -> Sight:
    """No event opens the response, or names it."""
    if seen.errors or not seen.events or not any(_meant(seen)):
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
    return seen.events if seen.is_chat else own


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
    return None


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


def missing_finish_reason(seen: Seen) -> Sight:
    """It ends with [DONE], without a reason."""
    ended = seen.is_chat and seen.response.done_marker and not seen.stop and not seen.errors
    return "it says [DONE], and no chunk has a finish reason" if ended and seen.choices else None


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


def cumulative_deltas(seen: Seen) -> Sight:
    """Each delta repeats all of the text so far."""
    count, before = 0, ""
    for delta in filter(None, _text_deltas(seen)):
        # A healthy stream is left at its second delta.
        if count and not (delta.startswith(before) and len(delta) > len(before)):
            return None
        count, before = count + 1, delta
    if count < 3 or len(before) < _LONG_TEXT:
        return None
    return f"{count} deltas, each of which begins with the one before"


def _text_deltas(seen: Seen) -> Iterator[str]:
    for choice in seen.choices:
        yield text(record(choice.get("delta")).get("content"))
    for event in seen.of_kind("content_block_delta"):
        yield text(record(event.get("delta")).get("text"))
    for event in seen.of_kind("response.output_text.delta"):
        yield text(event.get("delta"))


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
    if key is None:
        return None
    where, part = key
    what = "arguments" if part == "arguments" else "text"
    return f"the {what} of item {where} came whole"


def nothing_restated(seen: Seen) -> Sight:
    """Its last event, which should restate everything, restates nothing."""
    ends = [record(event.get("response")) for event in seen.of_kind("response.completed")]
    begun = seen.of_kind("response.output_item.added", "response.output_item.done")
    empty = begun and ends and not objects(ends[-1].get("output"))
    return "response.completed has no output" if empty else None


def corrected_by_done(seen: Seen) -> Sight:
    """What restates the deltas is another text."""
    if not seen.is_responses:
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


# ---------------------------------------------------------------------------- what is in the calls


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


def broken_arguments(seen: Seen) -> Sight:
    """Arguments are no JSON object, though the model was said to be done."""
    if double_encoded(seen) or duplicate_keys(seen):
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
    return _detail(seen, "replayable")


def over_the_limits(seen: Seen) -> Sight:
    """It is longer than a response may be."""
    return _detail(seen, "limits")


def _detail(seen: Seen, check: str) -> Sight:
    return next((f.detail for f in seen.findings if f.check == check and f.status == "fail"), None)


# -------------------------------------------------- where none of the above says why it was refused


def end_disagrees(seen: Seen) -> Sight:
    """The end of the response disagrees with what was streamed."""
    later = {"completed", "response_id", "texts_equal", "calls_equal"}
    later |= {"none_omitted", "none_invented", "call_ids"}
    return seen.failure.reason if seen.failure is not None and seen.check in later else None


def against_the_rules(seen: Seen) -> Sight:
    """Its events break the rules of their API in a way without a name of its own."""
    return seen.failure.reason if seen.failure is not None else None
