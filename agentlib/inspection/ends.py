"""The diagnoses of what came at all, and of how it ended.

A detector is a pure function of what was seen. It looks for the one thing that it is named for,
so that a healthy stream meets none of them, and describes it in a few words for a reader.
"""

from __future__ import annotations

from agentlib.inspection.diagnosis import Diagnosis
from agentlib.inspection.observations import Native, Seen, record, text
from agentlib.inspection.reasons import Kind, Reason, meaning
from agentlib.jsonvalues import quote
from agentlib.recordings.capture import CUT_BY_NEXT
from agentlib.recordings.events import LAST_BLANK_LINE
from agentlib.recordings.sniff import UNKNOWN_RECORDING
from agentlib.wording import plural

Sight = str | None
NO_STREAM = ("this is ", "these are ", "binary data", "the file ")
KEEP_ALIVES = frozenset(("ping", "keepalive", "keep-alive", "heartbeat"))


def no_stream(seen: Seen) -> Sight:
    """Something else than a stream came: a page, an error body, a whole response."""
    fault = seen.response.fault or ""
    other = not seen.events and fault.startswith(NO_STREAM)
    return fault if other and unknown_recording(seen) is None else None


def unknown_recording(seen: Seen) -> Sight:
    """A recording in JSON has none of the shapes that are known."""
    fault = seen.response.fault or ""
    return fault if not seen.events and fault.startswith(UNKNOWN_RECORDING) else None


def other_stream(seen: Seen) -> Sight:
    """The stream is of another protocol than a model's."""
    if not any("jsonrpc" in event for event in seen.events):
        return None
    return "its messages are JSON-RPC, as MCP sends them"


def error_page(seen: Seen) -> Sight:
    """A gateway's page of HTML stands where the rest of the stream should be."""
    page = seen.response.page if no_stream(seen) is None else ""
    return (
        f"after event {len(seen.events)} came {quote(page)}" if page and not _ended(seen) else None
    )


def broken_event(seen: Seen) -> Sight:
    """An event cannot be read, so that nothing after it counts."""
    fault = seen.response.fault
    if fault is None or error_page(seen) or no_stream(seen) or unknown_recording(seen):
        return None
    return f"event {len(seen.events) + 1}: {fault}"


def keep_alives_only(seen: Seen) -> Sight:
    """The connection was held open, and nothing else came."""
    others = (e for e in seen.events if text(e.get("type")) not in KEEP_ALIVES)
    response = seen.response
    if any(True for _ in others) or response.fault is not None or response.dropped or response.page:
        return None
    return f"{plural(len(seen.events), 'event')}, and none says anything"


def error_in_the_stream(seen: Seen) -> Sight:
    """An error came as an event, after a status of success."""
    if not seen.errors or other_stream(seen):
        return None
    error = seen.errors[0]
    return f"it says {quote(error.get('message') or error.get('code') or error.get('type'))}"


def failed_midway(seen: Seen) -> Sight:
    """The provider itself gave up."""
    if not seen.of_kind("response.failed"):
        return _stopped_for(seen, "failed")
    errors = (record(body.get("error")) for body in seen.bodies)
    error: Native = next((each for each in errors if each), {})
    return f"response.failed: {quote(error.get('message') or error.get('code') or 'no reason')}"


def stopped_short(seen: Seen) -> Sight:
    """The model was stopped before it was done."""
    if seen.of_kind("response.incomplete"):
        return f"it stopped for {quote(seen.stop or 'no reason')}"
    return _stopped_for(seen, "short")


def paused(seen: Seen) -> Sight:
    """The provider interrupts the turn, and waits to go on."""
    return _stopped_for(seen, "paused")


def other_finish_words(seen: Seen) -> Sight:
    """It ends for a reason of another API, which has the meaning of one of its own."""
    return _stopped_for(seen, "other")


def unknown_finish_reason(seen: Seen) -> Sight:
    """It ends for a reason that no reference names."""
    if not seen.stop or seen.check != "completed" or _reason(seen) is not None:
        return None
    return f"it stopped for {quote(seen.stop)}" if not seen.is_responses else None


def _reason(seen: Seen) -> Reason | None:
    return meaning(seen.stop, seen.provider)


def _stopped_for(seen: Seen, kind: Kind) -> Sight:
    reason = _reason(seen)
    if reason is None or reason.kind != kind or seen.failure is None:
        return None
    return f"it stopped for {quote(seen.stop)}: {reason.meaning}"


def _ended(seen: Seen) -> bool:
    return bool(seen.has_ended or seen.response.done_marker or seen.errors)


def last_blank_line(seen: Seen) -> Sight:
    """Only the blank line after its last event is missing, which the standard then drops."""
    last = seen.response.last
    if last is None or LAST_BLANK_LINE not in seen.helps:
        return None
    kind = quote(last.data["type"]) if "type" in last.data else "a chunk"
    return f"the event that is dropped is its end, {kind}"


def cut_stream(seen: Seen) -> Sight:
    """The connection ended in the middle: no event of the provider ends the response."""
    ended = _ended(seen) or seen.response.fault or seen.response.page
    others = (glued_responses, keep_alives_only, last_blank_line, other_stream)
    if ended or any(other(seen) is not None for other in others):
        return None
    if seen.response.dropped:
        return f"it ends inside event {len(seen.events) + 1}"
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


ROWS = (
    Diagnosis(
        "html-or-json-instead-of-stream",
        "Something other than a stream",
        "A gateway that answers with its own page or error, a server that ignores "
        '`"stream": true`, or a recording of something else.',
        "read what came; ask for a stream, at the API's own address",
        no_stream,
    ),
    Diagnosis(
        "unknown-recording",
        "A recording of an unknown kind",
        "A tool that records in JSON by names of its own.",
        "take the stream's own text out of it, or record as curl, a browser (HAR) or VCR does",
        unknown_recording,
    ),
    Diagnosis(
        "other-stream",
        "A stream that is not a model's",
        "A server of tools (MCP), whose messages come as an event stream too.",
        "record between your agent and its model, not between the agent and its tools",
        other_stream,
    ),
    Diagnosis(
        "error-page-in-the-stream",
        "An error page where the rest should be",
        "A gateway whose own time limit ends the stream, after a status of success.",
        "run nothing of it; look for a time limit at the gateway, and retry as after a cut",
        error_page,
    ),
    Diagnosis(
        "broken-event",
        "An event that cannot be read",
        "A proxy that cuts or joins lines, a server that builds JSON by hand, or a file that was "
        "edited.",
        "look at that event's bytes; record again without what stands between",
        broken_event,
    ),
    Diagnosis(
        "keep-alives-only",
        "Nothing but keep-alives",
        "A gateway that holds the connection open while the provider behind it is queued or down.",
        "set an idle time-out that keep-alives do not reset, and retry the opening",
        keep_alives_only,
    ),
    Diagnosis(
        "error-in-the-stream",
        "An error, after the status said 200",
        "Every provider, when quota, load or a filter ends a response that had begun.",
        "act on its message as on an error status; retry only what may be retried",
        error_in_the_stream,
    ),
    Diagnosis(
        "failed-midway",
        "The provider gave up",
        "Every provider, seldom: its own failure, told as `response.failed`, or as a finish reason "
        "such as `error`, `network_error` or `insufficient_system_resource`.",
        "discard what was streamed; a new request is a new decision",
        failed_midway,
    ),
    Diagnosis(
        "stopped-short",
        "The model was stopped before it was done",
        "Every provider, where the output limit, the context or a filter is reached, or the "
        "model refuses.",
        "run nothing that it had begun; where a limit was reached, raise it or ask for less",
        stopped_short,
    ),
    Diagnosis(
        "paused-turn",
        "A turn that waits to go on",
        "Anthropic, in a long turn with hosted tools (`pause_turn`), or after it summed up its "
        "context (`compaction`).",
        "send the content back as it is, and the model goes on; nothing is to be run",
        paused,
    ),
    Diagnosis(
        "other-finish-words",
        "Its finish reason is another API's",
        "Servers that pass on their engine's word: Text Generation Inference and Together (`eos`, "
        "`eos_token`), gateways in front of Anthropic (`end_turn`), Gemini (`STOP`) or Cohere.",
        "read it with --compat other-finish-words",
        other_finish_words,
        flag="other-finish-words",
    ),
    Diagnosis(
        "unknown-finish-reason",
        "A finish reason that no reference names",
        "A server with words of its own, or an API that has a new one.",
        "run nothing of it; look the word up in that server's reference before you believe it",
        unknown_finish_reason,
    ),
    Diagnosis(
        "last-blank-line",
        "The last blank line is missing",
        "A tool or an editor that strips the end of a recording; the standard then drops the last "
        "event.",
        "read it with --compat missing-last-blank-line",
        last_blank_line,
        flag=LAST_BLANK_LINE,
    ),
    Diagnosis(
        "cut-stream",
        "The connection ended in the middle",
        "A proxy with a time limit, a server that was restarted, or a recording that was stopped.",
        "run nothing of it; look for a time limit between you and the provider",
        cut_stream,
    ),
    Diagnosis(
        "glued-responses",
        "Two responses in one",
        "A gateway that tries another provider after the first has streamed, and goes on in the "
        "same answer.",
        "turn off its retry of begun streams; neither of the two can be believed",
        glued_responses,
    ),
    Diagnosis(
        "sent-after-the-end",
        "More after the end",
        "A gateway that appends its own events, or servers that report usage late.",
        "nothing: what follows the end is never read; ask its operator if a call is among it",
        sent_after_the_end,
        released=True,
    ),
)
