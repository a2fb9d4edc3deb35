"""A table, described once as cells, and written as text and as escaped HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, repeat
from typing import Literal, NamedTuple, TypeAlias

from agentlib.jsonvalues import printable

# A line of a page is read at one glance.
MAX_CELL_CHARACTERS = 96
Scope: TypeAlias = Literal["col", "row", ""]


class Cell(NamedTuple):
    """A cell: its text, the CSS that it adds to the table's, and its markup.

    `markup` is HTML whose texts are escaped already; without it the text is escaped.
    """

    text: str
    style: str = ""
    markup: str | None = None


@dataclass(frozen=True, repr=False)
class Table:
    """Rows of cells, with a heading for each column; a cell that needs no more is a plain text.

    `title` is the caption, `style` the CSS of every cell. `named_rows` says that the first cell
    of a row is its heading. `kinds` has an HTML class for each row, where rows have one.
    """

    headings: tuple[str | Cell, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    title: str = ""
    style: str = "text-align:left"
    named_rows: bool = False
    kinds: tuple[str, ...] = ()

    def __repr__(self) -> str:
        every = [tuple(map(_text, row)) for row in (self.headings, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*every, strict=True)]
        rule = tuple("-" * width for width in widths)
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in (every[0], rule, *every[1:])
        )

    def _repr_html_(self) -> str:
        return "".join(self._html())

    def _html(self) -> Iterator[str]:
        yield "<table>"
        if self.title:
            title = escape(self.title)
            yield f'<caption style="text-align:left"><strong>{title}</strong></caption>'
        rows = "".join(map(self._row, self.rows, chain(self.kinds, repeat(""))))
        if self.headings:
            # The corner above the rows' headings may be empty, and is then no heading.
            cells = (self._cell(each, "col" if _text(each) else "") for each in self.headings)
            yield f"<thead><tr>{''.join(cells)}</tr></thead>"
            rows = f"<tbody>{rows}</tbody>"
        yield f"{rows}</table>"

    def _row(self, row: Sequence[str | Cell], kind: str) -> str:
        scopes: Iterable[Scope] = chain(["row"] if self.named_rows else [], repeat(""))
        cells = "".join(map(self._cell, row, scopes))
        return f'<tr class="{escape(kind)}">{cells}</tr>' if kind else f"<tr>{cells}</tr>"

    def _cell(self, cell: str | Cell, scope: Scope) -> str:
        shown = cell if isinstance(cell, Cell) else Cell(cell)
        style = ";".join(filter(None, (self.style, shown.style)))
        styled = f' style="{style}"' if style else ""
        inner = escape(shown.text) if shown.markup is None else shown.markup
        if scope:
            return f'<th scope="{scope}"{styled}>{inner}</th>'
        return f"<td{styled}>{inner}</td>"


def table(headings: str, rows: Iterable[Sequence[object]]) -> Table:
    """Return a table of any values. `headings` names its columns, separated by commas."""
    cells = (tuple(bounded(value) for value in row) for row in rows)
    return Table(tuple(name.strip() for name in headings.split(",")), tuple(cells))


def bounded(value: object) -> str:
    """Return a value as the text of one cell: one line, bounded, with nothing invisible."""
    text = printable(" ".join(str(value).split()))
    return text if len(text) <= MAX_CELL_CHARACTERS else f"{text[: MAX_CELL_CHARACTERS - 1]}…"


def scrollable(label: str, *parts: str) -> str:
    """Return HTML that is wider than its page may be; the keyboard reaches and scrolls it."""
    name = escape(label)
    opened = f'<div tabindex="0" role="group" aria-label="{name}" style="overflow-x:auto">'
    return f"{opened}{''.join(parts)}</div>"


def _text(cell: str | Cell) -> str:
    return cell.text if isinstance(cell, Cell) else cell
