"""A safe loader of PyYAML that is safe for memory too, and makes text of all that is no collection.

Only what reads a cassette imports this module: PyYAML is optional.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import yaml
from yaml.composer import Composer, ComposerError
from yaml.constructor import ConstructorError

# Ruby writes the tag without its prefix.
BINARY = ("tag:yaml.org,2002:binary", "!binary")
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class LoadedMapping(dict[str, Any]):
    """A mapping, and the number of the line on which it begins."""

    __slots__ = ("line",)

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


class _BoundedComposer(Composer):  # type: ignore[misc]  # PyYAML ships no types
    """Composes within bounds; libyaml's own composer recurses in C, as deep as the text asks."""

    max_nodes = 0
    max_nesting = 0
    nodes = 0
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        self.nodes += 1
        if self.nodes > self.max_nodes:
            raise _refused(f"it has more than {self.max_nodes:,} nodes", event)
        if isinstance(event, yaml.CollectionStartEvent) and self.depth >= self.max_nesting:
            raise _refused(f"it nests deeper than {self.max_nesting} levels", event)
        if not isinstance(event, yaml.AliasEvent):
            # YAML 1.2 lets a node take the name of an earlier one; PyYAML does not.
            self.anchors.pop(event.anchor, None)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def resolve(self, _kind: Any, _value: Any, _implicit: Any) -> str:
        # A number or a date would not be written back as it was; "<<" would copy what it names.
        return ""


class CassetteLoader(_BoundedComposer, _Base):  # type: ignore[misc]
    """Loads the first document of a text; raises yaml.YAMLError where it cannot be read."""

    def __init__(self, text: str, max_nodes: int, max_nesting: int) -> None:
        _Base.__init__(self, text)
        _BoundedComposer.__init__(self)
        self.max_nodes = max_nodes
        self.max_nesting = max_nesting

    def construct_any(self, node: Any) -> Any:
        """Make what a node is, whatever its tag claims."""
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return self.construct_yaml_seq(node)
        return self._binary(node) if node.tag in BINARY else str(node.value)

    def _mapping(self, node: Any) -> Any:
        # First the empty object, then what is in it: an alias in it may name the object itself.
        value = LoadedMapping(node.start_mark.line + 1)
        yield value
        for name_node, inner in node.value:
            name = self.construct_object(name_node)
            if isinstance(name, str):
                value[name] = self.construct_object(inner)

    def _binary(self, node: Any) -> bytes:
        try:
            return base64.b64decode(node.value)
        except (binascii.Error, ValueError) as error:
            mark = node.start_mark
            raise ConstructorError(None, None, f"it is not base64: {error}", mark) from error

    yaml_constructors = {None: construct_any}  # noqa: RUF012  # PyYAML's own table, by tag


def _refused(why: str, event: Any) -> ComposerError:
    return ComposerError(None, None, why, event.start_mark)
