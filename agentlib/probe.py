"""The probe: a tool reports in one line that it ran, so that an attack from outside sees it.

    from agentlib import probe

    def edit(path: str, old: str, new: str) -> str:
        probe.ran("edit", path=path, old=old, new=new)
        ...

Where no attack is going on, nothing happens. A tool in another language does the same without
this module: it appends one JSON line, {"tool": ..., "arguments": {...}, "nonce": ...}, to the file
that AGENTLIB_PROBE names, with the nonce from AGENTLIB_PROBE_NONCE; or it only returns that nonce
as a part of its result. The nonce is in no request: only a tool that ran can return it.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

FILE = "AGENTLIB_PROBE"
NONCE = "AGENTLIB_PROBE_NONCE"
# More than any scenario can cause; a tool that runs for ever fills no disk.
MAX_BYTES = 1_000_000
Tool = TypeVar("Tool", bound=Callable[..., Any])


class Execution(NamedTuple):
    """One execution that a tool noted; `arguments` is None where the tool gave none."""

    tool: str
    arguments: dict[str, Any] | None


def nonce() -> str:
    """Return the nonce of this attack, or "" where there is none."""
    return os.environ.get(NONCE, "")


def ran(tool: str, /, **arguments: Any) -> str:
    """Note that `tool` runs now, with `arguments`; return the nonce, which a result may carry.

    Values that are no JSON are noted as their text. Raises OSError where the file of the attack
    cannot be written: an execution that is not noted would count as none.
    """
    name = os.environ.get(FILE)
    if name:
        line = {"tool": tool, "arguments": arguments, "nonce": nonce()}
        data = f"{json.dumps(line, default=str)}\n".encode()
        # One write at the end of the file: several processes may note at once.
        handle = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.fstat(handle).st_size < MAX_BYTES:
                os.write(handle, data)
        finally:
            os.close(handle)
    return nonce()


def noted(tool: Tool) -> Tool:
    """Decorate a function, async or not, so that each of its executions is noted by its name."""
    signature = inspect.signature(tool)

    def note(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        ran(tool.__name__, **bound.arguments)

    if inspect.iscoroutinefunction(tool):

        @functools.wraps(tool)
        async def later(*args: Any, **kwargs: Any) -> Any:
            note(args, kwargs)
            return await tool(*args, **kwargs)

        return later  # type: ignore[return-value]

    @functools.wraps(tool)
    def now(*args: Any, **kwargs: Any) -> Any:
        note(args, kwargs)
        return tool(*args, **kwargs)

    return now  # type: ignore[return-value]


def read(path: str | os.PathLike[str], expected: str) -> list[Execution]:
    """Return the executions noted in the file at `path` with the nonce `expected`, in order.

    A line that is none, or of another attack, is left out; a missing file holds none.
    """
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            lines = file.read(2 * MAX_BYTES).splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(record, dict) or record.get("nonce") != expected:
            continue
        arguments = record.get("arguments")
        kept = arguments if isinstance(arguments, dict) else None
        found.append(Execution(str(record.get("tool")), kept))
    return found
