"""Diagnoses: what kind of server sends a stream like this one, and what to do about it.

The gate finds which check failed. A diagnosis names what that usually means: it has a stable name,
a place on the page `notebooks/diagnoses.md`, and an authored stream. A stream may have several, a
healthy one has none. One that was released may have those that cost something, such as its usage.

To add one:

1. A detector in `detectors.py`: a function of `Seen` that returns what it sees, or None.
2. A row of the table below: `released=True` where a released response may show it, and its name in
   `_HARMLESS` where it refuses nothing.
3. `fixtures/diagnoses/NAME.sse`, the smallest stream with this diagnosis and no other; its first
   line is `: authored fixture — `, and what it shows.
4. The page, written again: `python -m agentlib.inspection.page > notebooks/diagnoses.md`.
5. In `tests/test_diagnoses.py` its name in RELEASED, if it is released; the rest is found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from agentlib.conversation import Catalog
from agentlib.failures import ResponseFailure
from agentlib.inspection import detectors as found
from agentlib.inspection.gemini_detectors import call_goes_on
from agentlib.inspection.observations import Seen, read_response
from agentlib.providers.registry import PROVIDERS
from agentlib.reader import ResponseReader
from agentlib.recordings.events import CapturedResponse

PAGE = "notebooks/diagnoses.md"


class Diagnosis(NamedTuple):
    """One kind of server, or of accident: what it does, who does it, and what to do.

    `flag` is the `--compat` name that reads it all the same, "" where none does. `find` returns
    what it sees in a response, in a few words, or None. `released` rows are asked of a response
    that was released too. `last` rows count only where no other row explains a refusal.
    """

    name: str
    title: str
    server: str
    to_do: str
    find: Callable[[Seen], str | None]
    flag: str = ""
    released: bool = False
    last: bool = False

    @property
    def anchor(self) -> str:
        """Where it stands on the page."""
        return f"{PAGE}#{self.name}"


class Diagnosed(NamedTuple):
    """A diagnosis of one response, and what of it was seen there."""

    diagnosis: Diagnosis
    seen: str

    @property
    def name(self) -> str:
        """The stable name of the diagnosis."""
        return self.diagnosis.name

    @property
    def text(self) -> str:
        """It in one line: its name, what was seen, and what to do."""
        return f"{self.name}: {self.seen} → {self.diagnosis.to_do}"

    def row(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "name": self.name,
            "title": self.diagnosis.title,
            "seen": self.seen,
            "to_do": self.diagnosis.to_do,
            "compat": self.diagnosis.flag or None,
            "page": self.diagnosis.anchor,
        }

    def __repr__(self) -> str:
        return self.text


_TABLE = (
    Diagnosis(
        "html-or-json-instead-of-stream",
        "Something other than a stream",
        "A gateway that answers with its own page or error, a server that ignores "
        '`"stream": true`, or a recording of something else.',
        "read what came; ask for a stream, at the API's own address",
        found.no_stream,
    ),
    Diagnosis(
        "broken-event",
        "An event that cannot be read",
        "A proxy that cuts or joins lines, a server that builds JSON by hand, or a file that was "
        "edited.",
        "look at that event's bytes; record again without what stands between",
        found.broken_event,
    ),
    Diagnosis(
        "keep-alives-only",
        "Nothing but keep-alives",
        "A gateway that holds the connection open while the provider behind it is queued or down.",
        "set an idle time-out that keep-alives do not reset, and retry the opening",
        found.keep_alives_only,
    ),
    Diagnosis(
        "error-in-the-stream",
        "An error, after the status said 200",
        "Every provider, when quota, load or a filter ends a response that had begun.",
        "act on its message as on an error status; retry only what may be retried",
        found.error_in_the_stream,
    ),
    Diagnosis(
        "failed-midway",
        "The provider gave up",
        "Every provider, seldom: its own failure, told as `response.failed`.",
        "discard what was streamed; a new request is a new decision",
        found.failed_midway,
    ),
    Diagnosis(
        "stopped-short",
        "The model was stopped before it was done",
        "Every provider, where the output limit, the context or a filter is reached, or the "
        "model refuses.",
        "run nothing that it had begun; where a limit was reached, raise it or ask for less",
        found.stopped_short,
    ),
    Diagnosis(
        "cut-stream",
        "The connection ended in the middle",
        "A proxy with a time limit, a server that was restarted, or a recording that was stopped.",
        "run nothing of it; look for a time limit between you and the provider",
        found.cut_stream,
    ),
    Diagnosis(
        "glued-responses",
        "Two responses in one",
        "A gateway that tries another provider after the first has streamed, and goes on in the "
        "same answer.",
        "turn off its retry of begun streams; neither of the two can be believed",
        found.glued_responses,
    ),
    Diagnosis(
        "sent-after-the-end",
        "More after the end",
        "A gateway that appends its own events, or servers that report usage late.",
        "nothing: what follows the end is never read; ask its operator if a call is among it",
        found.sent_after_the_end,
        released=True,
    ),
    Diagnosis(
        "missing-opening",
        "It never opened",
        "A server that copies the API without its first event or the response's ID, or a "
        "recording that was begun too late.",
        "read it with --compat missing-opening, or record from the first byte",
        found.missing_opening,
        flag="missing-opening",
    ),
    Diagnosis(
        "rotating-item-ids",
        "Item IDs that change or are missing",
        "A gateway that encrypts IDs anew on each event, such as GitHub Copilot; local servers "
        "that send none.",
        "read it with --compat rotating-ids",
        found.rotating_item_ids,
        flag="rotating-ids",
    ),
    Diagnosis(
        "index-always-zero",
        "Several at one index",
        "A server that copies the API and streams one call at a time, each at index 0.",
        "tell calls apart by their call IDs, never by the index; report it to its operator",
        found.index_always_zero,
        released=True,
    ),
    Diagnosis(
        "call-without-id",
        "Calls without an ID",
        "Local servers, and gateways in front of models whose API has no call IDs.",
        "read it with --compat call-without-id, and send the made-up ID back",
        found.call_without_id,
        flag="call-without-id",
    ),
    Diagnosis(
        "duplicate-call-id",
        "One ID for two calls",
        "A server that makes IDs from the tool's name, or counts anew for each call.",
        "run neither call: no result could be matched; report it to its operator",
        found.duplicate_call_id,
    ),
    Diagnosis(
        "missing-finish-reason",
        "It says [DONE], and not why",
        "Gateways in front of Gemini, and servers of one's own that copy the API.",
        "read it with --compat done-without-reason",
        found.missing_finish_reason,
        flag="done-without-reason",
    ),
    Diagnosis(
        "call-goes-on",
        "It says STOP while a call goes on",
        "Gemini, whose calls come in pieces, and gateways that drop a part without content.",
        "read it with --compat unended-call and --tools: only a schema shows that it is whole",
        call_goes_on,
        flag="unended-call",
    ),
    Diagnosis(
        "nothing-restated",
        "Nothing restated at the end",
        "ChatGPT's Codex backend, and gateways that translate from another API.",
        "read it with --compat terminal-restates-nothing",
        found.nothing_restated,
        flag="terminal-restates-nothing",
    ),
    Diagnosis(
        "corrected-by-done",
        "The restatement is another text",
        "A server whose parser holds back the last fragments, or a proxy that rewrites one and "
        "not the other.",
        "find out which text is meant; --compat corrected-by-done takes the later one",
        found.corrected_by_done,
        flag="corrected-by-done",
    ),
    Diagnosis(
        "no-deltas",
        "No deltas",
        "A gateway that waits for the whole answer and then plays a stream, such as LM Studio "
        "for arguments.",
        "nothing is wrong, and nothing can be shown early; expect a long silence first",
        found.no_deltas,
        released=True,
    ),
    Diagnosis(
        "cumulative-deltas",
        "Each delta repeats all before it",
        "A server that sends the text so far instead of what is new.",
        "append nothing: ask its operator for true deltas, or take the last one alone",
        found.cumulative_deltas,
        released=True,
    ),
    Diagnosis(
        "usage-missing",
        "Usage is missing",
        'Chat servers that were not asked (`"stream_options": {"include_usage": true}`), and '
        "gateways that drop it.",
        "ask for it in the request; until then no budget can count this response",
        found.usage_missing,
        released=True,
    ),
    Diagnosis(
        "cumulative-usage",
        "Usage in every chunk",
        "Servers such as Perplexity's and xAI's, which report the usage so far each time.",
        "take the last report; adding them up counts the same tokens many times",
        found.cumulative_usage,
        released=True,
    ),
    Diagnosis(
        "arguments-as-object",
        "Arguments as an object",
        "Local servers that send parsed arguments where the API has their JSON text.",
        "ask its operator; what the model wrote can no longer be checked",
        found.arguments_as_object,
    ),
    Diagnosis(
        "double-encoded-arguments",
        "Arguments encoded twice",
        "A gateway that encodes arguments which were JSON text already, or a small model.",
        "find who encodes twice, and stop it; do not decode twice on suspicion",
        found.double_encoded,
    ),
    Diagnosis(
        "duplicate-keys",
        "One name twice in the arguments",
        "A small model, or a gateway that merges fragments of two calls.",
        "tell the model which name stood twice, and let it call again",
        found.duplicate_keys,
    ),
    Diagnosis(
        "broken-arguments",
        "Arguments that are no JSON object",
        "A small model, a parser that drops characters, or a call without arguments sent as an "
        "empty text.",
        "tell the model what is wrong, and let it call again; ask for strict schemas",
        found.broken_arguments,
    ),
    Diagnosis(
        "arguments-off-schema",
        "Arguments that the schema refuses",
        "A model without strict schemas, or a schema that the server changed on its way.",
        "tell the model what the schema says, and let it call again; ask for strict schemas",
        found.off_schema,
    ),
    Diagnosis(
        "unknown-tool",
        "A tool that was not exposed",
        "A model that remembers a tool from its training or from earlier in the talk, or a "
        "gateway that renames tools.",
        "compare the name with the request's; tell the model which tools there are",
        found.unknown_tool,
    ),
    Diagnosis(
        "item-for-the-host",
        "An item that asks the host to act",
        "A provider whose built-in tools were turned on: a shell, a patch, an approval.",
        "turn that tool off in the request, or write its handler yourself",
        found.item_for_the_host,
    ),
    Diagnosis(
        "over-the-limits",
        "Longer than a response may be",
        "A model that repeats itself without end, or that asks for everything at once.",
        "look at what it repeats or asks for, before you raise the limit",
        found.over_the_limits,
    ),
    Diagnosis(
        "end-disagrees",
        "The end disagrees with the stream",
        "A gateway that composes the last event from something other than what it streamed.",
        "believe neither; report the two texts to its operator",
        found.end_disagrees,
        last=True,
    ),
    Diagnosis(
        "against-the-rules",
        "Against the rules of its API",
        "A server that copies the API, or a recording in which events were lost or moved.",
        "step to the event that the gate names, and compare it with the API's reference",
        found.against_the_rules,
        last=True,
    ),
)

DIAGNOSES: dict[str, Diagnosis] = {each.name: each for each in _TABLE}
# They cost something, and are never the reason why a response was refused.
_HARMLESS = frozenset(
    ("sent-after-the-end", "no-deltas", "usage-missing", "cumulative-usage", "index-always-zero")
)


def diagnose(
    provider: str,
    response: CapturedResponse,
    catalog: Catalog | None = None,
    *,
    native: bool = True,
    compat: Collection[str] = (),
) -> tuple[Diagnosed, ...]:
    """Read one response of a capture and return what is known of servers that send the like.

    `native` and `compat` are as for `Replay`. Raises UnknownFlag, and nothing else.
    """
    adapter = provider if provider in PROVIDERS else "responses"
    reader = ResponseReader(adapter, catalog, native=native, compat=compat)
    failure = read_response(reader, response)
    return diagnose_reading(provider, response, reader, failure, compat)


def diagnose_reading(
    provider: str,
    response: CapturedResponse,
    reader: ResponseReader,
    failure: ResponseFailure | None,
    compat: Collection[str] = (),
) -> tuple[Diagnosed, ...]:
    """Return the diagnoses of a response that `reader` has read, in the table's order.

    Those whose flag is in `compat` are left out: it is tolerated already.
    """
    assembly = reader.assembly
    seen = Seen(
        provider if provider in PROVIDERS else "responses",
        response,
        assembly.evidence(),
        assembly.findings(),
        failure,
        reader.unread,
    )
    # What refuses a response stands in no released one, unless after its end.
    released = failure is None and not reader.unread
    rows = [row for row in _TABLE if row.flag not in compat and (row.released or not released)]
    diagnosed: list[Diagnosed] = []
    for row in rows:
        explained = any(each.name not in _HARMLESS for each in diagnosed)
        sight = None if row.last and explained else row.find(seen)
        if sight is not None:
            diagnosed.append(Diagnosed(row, sight))
    return tuple(diagnosed)
