"""The state of a run: all that another process needs to go on with it, as JSON."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentlib.assembly import Decision
from agentlib.conversation import Entry, Message, NativeTurn, RejectedCall, ToolCall, ToolResult
from agentlib.errors import AgentlibError
from agentlib.jsonvalues import FrozenObject, StrictJSONError, strict_loads, thaw
from agentlib.runtime.execution import Execution
from agentlib.runtime.limits import Account
from agentlib.runtime.publication import Committed

VERSION = 1


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

    def to_json(self) -> str:
        """Return the state as JSON text."""
        return json.dumps(
            {
                "version": VERSION,
                "run_id": self.run_id,
                "history": [_entry_out(entry) for entry in self.history],
                "account": self.account.to_json(),
                "executions": [_execution_out(execution) for execution in self.executions],
                "committed": [[text.kind, text.text] for text in self.committed],
                "pending": _entry_out(self.pending) if self.pending is not None else None,
                "elapsed": self.elapsed,
            },
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> RunState:
        """Return the state that `to_json` wrote. Raises StateError, saying what does not fit."""
        try:
            value = strict_loads(text)
            if value["version"] != VERSION:
                raise StateError(f"expected a saved run of version {VERSION}")
            pending = value["pending"]
            return cls(
                run_id=value["run_id"],
                history=[_entry_in(entry) for entry in value["history"]],
                account=Account.from_json(value["account"]),
                executions=[_execution_in(row) for row in value["executions"]],
                committed=[Committed(*row) for row in value["committed"]],
                pending=_message_in(pending) if pending is not None else None,
                elapsed=value["elapsed"],
            )
        except (StrictJSONError, KeyError, TypeError, IndexError) as error:
            raise StateError(f"this is no saved run: {error!r}") from error

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


def _entry_out(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, ToolResult):
        return {"result": [entry.call_id, entry.output]}
    native = entry.native
    return {
        "role": entry.role,
        "text": entry.text,
        "refusal": entry.refusal,
        "calls": [[c.call_id, c.name, thaw(c.arguments)] for c in entry.calls],
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


def _calls_in(rows: Iterable[Sequence[Any]]) -> Iterable[ToolCall]:
    return (ToolCall(call_id, name, FrozenObject(arguments)) for call_id, name, arguments in rows)


def _execution_out(execution: Execution) -> list[Any]:
    call = execution.call
    identity = [call.call_id, call.name, thaw(call.arguments)]
    times = [execution.waited, execution.ran]
    return [identity, execution.status, execution.output, *times, sorted(execution.beside)]


def _execution_in(row: Sequence[Any]) -> Execution:
    identity, status, output, waited, ran, beside = row
    call = next(iter(_calls_in([identity])))
    return Execution(call, status, output, waited, ran, frozenset(beside))
