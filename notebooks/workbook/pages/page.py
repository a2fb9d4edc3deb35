"""What a page shows: source code, tables, JSON and conversations, each as stable text.

Every object here has a complete text form, which GitHub shows and nbval compares. Text of a
stream is escaped wherever HTML is made.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from agentlib.conversation import Entry, Message
from agentlib.jsonvalues import dumps, printable, thaw
from agentlib.recordings.capture import Capture
from agentlib.stepper.labels import fragment, label
from agentlib.tables import Table, bounded, table
from agentlib.wording import plural


@dataclass(frozen=True, repr=False)
class Code:
    """A piece of this project's source, as it stands in its file."""

    file: str
    text: str

    def __repr__(self) -> str:
        return f"# {self.file}\n{self.text}"

    def _repr_markdown_(self) -> str:
        return f"```python\n{self!r}\n```\n"


@dataclass(frozen=True, repr=False)
class Text:
    """A text that is shown as it is, line by line."""

    text: str

    def __repr__(self) -> str:
        return self.text


def source(*objects: Callable[..., Any] | type | str) -> Code:
    """Return the source of functions, methods or classes of one module, from its file.

    Each is the object itself, or its full name, as "agentlib.gate.examine".
    """
    found = [resolve_name(each) if isinstance(each, str) else each for each in objects]
    modules = {inspect.getmodule(each) for each in found}
    module = modules.pop()
    if modules or module is None:
        raise ValueError("show the source of one module at a time")
    texts = (textwrap.dedent(inspect.getsource(each)).rstrip() for each in found)
    methods = all("." in each.__qualname__ for each in found)
    gap = "\n\n" if methods else "\n\n\n"
    return Code(f"{module.__name__.replace('.', '/')}.py", gap.join(texts))


def as_json(value: object) -> Text:
    """Return plain or frozen JSON values, written with indents."""
    return Text(printable(json.dumps(_plain(value), indent=2, ensure_ascii=False)))


def events(stream: Capture, first: int = 1, last: int | None = None) -> Table:
    """Return the events of a capture's first response, by number and kind, with their fragments."""
    shown = stream.events[first - 1 : last]
    rows = ((event.number, label(event.data), _fragment(event.data)) for event in shown)
    return table("event, kind, fragment", rows)


def transcript(history: Iterable[Entry]) -> Text:
    """Return a conversation, one entry after the other, with the calls and their results."""
    return Text("\n".join(line for entry in history for line in _entry_lines(entry)))


def _plain(value: object) -> object:
    return thaw(value) if isinstance(value, Mapping | list | tuple) else value


def _fragment(native: Mapping[str, Any]) -> str:
    told = fragment(native)
    return json.dumps(told, ensure_ascii=False) if told else ""


def _entry_lines(entry: Entry) -> Iterator[str]:
    if not isinstance(entry, Message):
        first, *others = entry.output.strip().splitlines() or [""]
        yield _line("result", f"{entry.call_id}: {first}")
        if others:
            yield _line("", f"({plural(len(others), 'line')} more)")
        return
    if entry.text or entry.refusal:
        yield _line(entry.role, entry.text or f"refuses: {entry.refusal}")
    for number, call in enumerate(entry.calls):
        who = "" if number or entry.text else entry.role
        yield _line(who, f"calls {call.name} {dumps(call.arguments)} as {call.call_id}")


def _line(who: str, text: str) -> str:
    return f"{who:<10} {bounded(text)}".rstrip()
