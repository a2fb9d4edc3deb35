"""The events of a stream, in no provider's words.

A translator turns each native event into none, one or more of these; the assembly accepts them.
The call ID is the key of a call: whatever a provider counts by (item, index, block), its
translator has mapped to the call ID before an event gets here. A `part` names one piece of text
in the same way, for example "msg_1/0". Deltas are not frozen, since a stream has thousands: a
frozen one costs twice the time to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentlib.conversation import NativeTurn, Usage
from agentlib.jsonvalues import FrozenObject


@dataclass(frozen=True, slots=True)
class Opened:
    """The response exists and has an ID. Exactly one, and first."""

    response_id: str


@dataclass(slots=True)
class TextDelta:
    """More of a text that the model says."""

    part: str
    text: str


@dataclass(slots=True)
class RefusalDelta:
    """More of a refusal: words, but not an answer."""

    part: str
    text: str


@dataclass(slots=True)
class ReasoningDelta:
    """More of the model's reasoning, as far as it is shown. Never part of an answer."""

    part: str
    text: str


@dataclass(frozen=True, slots=True)
class TextDone:
    """A text or refusal is whole, and `text` restates it. Progress only."""

    part: str
    text: str
    refusal: bool = False


@dataclass(frozen=True, slots=True)
class ToolStart:
    """A call began. `arguments` is what stood in its first event, often nothing.

    `caller` names the hosted program that made it, where one did.
    """

    call_id: str
    name: str
    item_id: str = ""
    arguments: str = ""
    caller: FrozenObject | None = None


@dataclass(slots=True)
class ToolArgsDelta:
    """More of a call's argument text: a fragment, never parsed."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolArgsDone:
    """A call's argument text is whole, and `arguments` restates it. Progress only."""

    call_id: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Corrected:
    """What was streamed under `key`, a call ID or a part, is replaced: `text` is meant instead.

    `of_text` is whether the key is that of a part: calls and parts are named apart from each other.
    Only a translator that was asked to tolerate such a server says so (`providers.compat`).
    """

    key: str
    streamed: str
    text: str
    of_text: bool = False


@dataclass(frozen=True, slots=True)
class TerminalText:
    """A text (or refusal) as the terminal event restates it."""

    part: str
    text: str
    refusal: bool = False


@dataclass(frozen=True, slots=True)
class TerminalCall:
    """A call as the terminal event restates it."""

    call_id: str
    name: str
    arguments: str
    item_id: str = ""
    completed: bool = True


@dataclass(frozen=True, slots=True)
class TerminalOther:
    """An item that is neither text nor call.

    `refused` says why it cannot be replayed, or is empty. `fault` says that it was streamed and
    the terminal event omits it, or that it was never streamed.
    """

    kind: str
    refused: str = ""
    fault: Literal["", "omitted", "invented"] = ""


TerminalItem: TypeAlias = TerminalText | TerminalCall


@dataclass(frozen=True, slots=True)
class Completed:
    """The provider says that the response is complete.

    `response_id` is the ID that it restates, None where nothing after the opening restated one.
    `problem` says how the event's body disagrees with that, or is empty. `items` restates the
    texts and calls in order, or is None where the API restates nothing; `others` are the items
    that are neither, and `native` keeps the output verbatim where it can be sent back so.
    `stop_reason` is why the model stopped, in the provider's word.
    """

    response_id: str | None
    problem: str = ""
    items: tuple[TerminalItem, ...] | None = None
    others: tuple[TerminalOther, ...] = ()
    usage: Usage | None = None
    native: NativeTurn | None = None
    stop_reason: str = ""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The provider says that the response ended in another way: failed, incomplete, error.

    `cut_by_length` is whether it reached its limit of output tokens.
    """

    kind: str
    reason: str
    usage: Usage | None = None
    cut_by_length: bool = False


Event: TypeAlias = (
    Opened
    | TextDelta
    | RefusalDelta
    | ReasoningDelta
    | TextDone
    | ToolStart
    | ToolArgsDelta
    | ToolArgsDone
    | Corrected
    | Completed
    | Stopped
)
