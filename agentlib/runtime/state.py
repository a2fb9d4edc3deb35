"""The state of a run: all that another process needs to go on with it, as JSON.

A saved run was outside of this process, and anybody may have changed it: it is judged as a whole
before it is a state again.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentlib.assembly import Decision
from agentlib.conversation import (
    Catalog,
    Entry,
    Message,
    NativeTurn,
    RejectedCall,
    ToolCall,
    ToolResult,
    check_history,
)
from agentlib.errors import AgentlibError, EncodingError
from agentlib.jsonvalues import FrozenObject, StrictJSONError, strict_loads, thaw
from agentlib.runtime.approvals import Waiting, digest, is_sealed, seal
from agentlib.runtime.execution import Execution
from agentlib.runtime.limits import Account
from agentlib.runtime.publication import Committed
from agentlib.runtime.state_schema import VERSION, state_validator
from agentlib.schemas import problem


class StateError(AgentlibError):
    """Raised when a saved run cannot be read, or an answer to it does not fit."""


@dataclass(slots=True)
class RunState:
    """What has happened in a run. `pending` is a released message whose calls wait."""

    history: list[Entry]
    run_id: str = field(default_factory=lambda: secrets.token_hex(8))
    account: Account = field(default_factory=Account)
    executions: list[Execution] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    pending: Message | None = None
    elapsed: float = 0.0

    def to_json(self, key: bytes | None = None) -> str:
        """Return the state as JSON text, sealed by `key` if there is one.

        Raises StateError where `from_json` could not read it, as with a lone surrogate in a text.
        """
        value = self._plain()
        sealed = value if key is None else {**value, "seal": seal(value, key)}
        text = json.dumps(sealed, ensure_ascii=False)
        self.from_json(text, key)
        return text

    @classmethod
    def from_json(cls, text: str, key: bytes | None = None) -> RunState:
        """Return the state that `to_json` wrote with the same key.

        Raises StateError, saying what does not fit: its form or its seal; `check` looks at its
        parts together.
        """
        value = _parsed(text)
        _check_seal(value, value.pop("seal", None), key)
        try:
            return cls(
                run_id=value["run_id"],
                history=[_entry_in(entry) for entry in value["history"]],
                account=Account.from_json(value["account"]),
                executions=[_execution_in(row) for row in value["executions"]],
                committed=[Committed(*row) for row in value["committed"]],
                pending=_message_in(value["pending"]) if value["pending"] is not None else None,
                elapsed=value["elapsed"],
            )
        except (AgentlibError, ArithmeticError, ValueError, TypeError) as error:
            raise StateError(f"this is no saved run: {error}") from error

    def check(self) -> None:
        """Raise StateError where the parts of the state do not fit together."""
        try:
            wrong = next(_disagreements(self), None)
        except EncodingError as error:
            wrong = str(error)
        if wrong is not None:
            raise StateError(f"the parts of this saved run do not fit: {wrong}")

    def waiting(self, reasons: Mapping[int, str]) -> tuple[Waiting, ...]:
        """Return the pending calls that wait, by their place in the message, each with a reason."""
        if self.pending is None:
            return ()
        state, calls = self._plain(), self.pending.calls
        return tuple(
            Waiting(calls[place], reason, digest(state, place)) for place, reason in reasons.items()
        )

    def _plain(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "run_id": self.run_id,
            "history": [_entry_out(entry) for entry in self.history],
            "account": self.account.to_json(),
            "executions": [_execution_out(execution) for execution in self.executions],
            "committed": [[text.kind, text.text] for text in self.committed],
            "pending": _entry_out(self.pending) if self.pending is not None else None,
            "elapsed": self.elapsed,
        }

    def wait_for(self, decision: Decision) -> Message:
        """Hold a released decision whose calls are not executed yet, and return its message."""
        self.pending = decision.message()
        return self.pending

    def settle(self, executions: Sequence[Execution]) -> None:
        """Append the pending message and one result for each of its calls, together, in order."""
        if self.pending is None:
            raise StateError("no call of this run waits for a result")
        self.history += [self.pending, *(execution.result() for execution in executions)]
        self.executions += executions
        self.pending = None


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = strict_loads(text)
    except (StrictJSONError, TypeError, AttributeError) as error:
        raise StateError(f"this is no saved run: {error}") from error
    wrong = problem(state_validator(), value)
    if wrong is not None:
        raise StateError(f"this is no saved run of version {VERSION}: {wrong}")
    return dict(value)


def _check_seal(value: dict[str, Any], found: str | None, key: bytes | None) -> None:
    if key is None and found is not None:
        raise StateError("this saved run is sealed, and this host has no key")
    if key is not None and (found is None or not is_sealed(value, found, key)):
        raise StateError("this saved run does not carry the seal of this host's key")


def _disagreements(state: RunState) -> Iterator[str]:
    """Yield what the parts of a state say against each other.

    Raises EncodingError where its history would not be valid after its pending calls.
    """
    whole = list(state.history)
    if state.pending is not None:
        whole += [state.pending, *(ToolResult(c.call_id, "") for c in state.pending.calls)]
    check_history(whole)
    ran = [(each.call, each.output) for each in state.executions]
    if ran != _answered(state.history)[len(_answered(state.history)) - len(ran) :]:
        yield "its executions are not those of its history"
    account = state.account
    turns = [repair.turn for repair in account.repairs]
    if turns != sorted(turns) or any(turn > account.turns for turn in turns):
        yield "its repairs are not in the order of its turns"
    lefts = [repair.left for repair in account.repairs]
    if lefts != sorted(set(lefts), reverse=True):
        yield "its repairs do not count down"
    if state.pending is not None and not account.turns:
        yield "a call waits, and no turn was counted"
    if account.unreported > account.turns or account.unpriced > account.turns:
        yield "it counts more turns without a usage than turns"


def _answered(history: Iterable[Entry]) -> list[tuple[ToolCall, str]]:
    outputs: dict[str, str] = {}
    calls: list[ToolCall] = []
    for entry in history:
        if isinstance(entry, ToolResult):
            outputs[entry.call_id] = entry.output
        else:
            calls += entry.calls
    return [(call, outputs[call.call_id]) for call in calls]


def _entry_out(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, ToolResult):
        return {"result": [entry.call_id, entry.output]}
    native = entry.native
    return {
        "role": entry.role,
        "text": entry.text,
        "refusal": entry.refusal,
        "calls": [_call_out(c) for c in entry.calls],
        "rejected": [[c.call_id, c.name, c.arguments] for c in entry.rejected],
        "native": [native.provider, thaw(native.items)] if native is not None else None,
    }


def _entry_in(value: Mapping[str, Any]) -> Entry:
    return ToolResult(*value["result"]) if "result" in value else _message_in(value)


def _message_in(value: Mapping[str, Any]) -> Message:
    native = value["native"]
    return Message(
        role=value["role"],
        text=value["text"],
        refusal=value["refusal"],
        calls=tuple(_calls_in(value["calls"])),
        rejected=tuple(RejectedCall(*row) for row in value["rejected"]),
        native=NativeTurn(native[0], tuple(native[1])) if native is not None else None,
    )


def _call_out(call: ToolCall) -> list[Any]:
    caller = [thaw(call.caller)] if call.caller is not None else []
    return [call.call_id, call.name, thaw(call.arguments), *caller]


def _calls_in(rows: Iterable[Sequence[Any]]) -> Iterable[ToolCall]:
    return (ToolCall(row[0], row[1], *map(FrozenObject, row[2:])) for row in rows)


def _execution_out(execution: Execution) -> list[Any]:
    identity = _call_out(execution.call)
    times = [execution.waited, execution.ran]
    return [identity, execution.status, execution.output, *times, sorted(execution.beside)]


def _execution_in(row: Sequence[Any]) -> Execution:
    identity, status, output, waited, ran, beside = row
    call = next(iter(_calls_in([identity])))
    return Execution(call, status, output, waited, ran, frozenset(beside))


def refuse_changed(tools: Catalog, message: Message) -> None:
    """Judge the calls of a saved run again: it was outside of this process. Raises StateError."""
    for call in message.calls:
        if not tools.exposes(call.name):
            raise StateError(f"tool {call.name!r} is not exposed any more")
        wrong = tools.problem(call.name, thaw(call.arguments))
        if wrong is not None:
            raise StateError(f"arguments of {call.name!r}: {wrong}")
