"""Mutations of a sequence, an event, or a text: cut, drop, double and swap; put, and take away.

Each returns a new value and leaves the old one as it was; what it did not touch is shared by both.
Places count from 0, and have to be there: whoever takes them from a reader checks them first.

One home for what a reader does to a recording, the contract to every encoding, and an attack to
the stream that it serves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, TypeVar

# What slices and adds up: events, a list inside of an event, or the characters of a text.
Items = TypeVar("Items", list[Any], tuple[Any, ...], str)
Path: TypeAlias = tuple[str | int, ...]


def cut(items: Items, after: int) -> Items:
    """Return the first `after` items."""
    return items[:after]


def drop(items: Items, at: int) -> Items:
    """Return the items without the one at `at`."""
    return items[:at] + items[at + 1 :]


def double(items: Items, at: int) -> Items:
    """Return the items with the one at `at` twice, in a row."""
    return items[: at + 1] + items[at:]


def swap(items: Items, at: int) -> Items:
    """Return the items with the one at `at` and the next in exchanged places."""
    return items[:at] + items[at + 1 : at + 2] + items[at : at + 1] + items[at + 2 :]


def nodes(event: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Yield the path and the value of everything inside of an event, from the outside in."""
    open_nodes: list[tuple[Path, Any]] = [((), event)]
    while open_nodes:
        path, value = open_nodes.pop()
        if path:
            yield path, value
        if isinstance(value, dict):
            open_nodes += [((*path, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            open_nodes += [((*path, place), inner) for place, inner in enumerate(value)]


def follow(node: Any, path: Path) -> Any:
    """Return the value at `path`, None where there is none."""
    for step in path:
        if isinstance(step, str):
            node = node.get(step) if isinstance(node, dict) else None
        else:
            node = node[step] if isinstance(node, list) and step < len(node) else None
    return node


def put(node: Any, path: Path, value: Any) -> Any:
    """Return a copy of `node` with `value` at `path`."""
    if not path:
        return value
    copy = node.copy()
    copy[path[0]] = put(node[path[0]], path[1:], value)
    return copy


def remove(node: Any, path: Path) -> Any:
    """Return a copy of `node` without what stands at `path`."""
    copy = node.copy()
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = remove(node[path[0]], path[1:])
    return copy
