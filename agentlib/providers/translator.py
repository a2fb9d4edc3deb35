"""What every translator does, whatever its API: the protocol, and a filter around one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from agentlib.conversation import Usage
from agentlib.providers.fields import Native
from agentlib.vocabulary import Event

Note: TypeAlias = Callable[[str], None]


class Translator(Protocol):
    """Turns one response's native events, in order, into the vocabulary.

    `trailing` is whether the response is decided and only its usage can still come. One may also
    have a `usage`: what was reported as billed so far.
    """

    @property
    def trailing(self) -> bool:
        """Whether only the usage can still come."""
        ...

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Return the neutral events that one native event stands for."""
        ...

    def finish(self) -> tuple[Event, ...]:
        """Return the neutral events that the clean end of the stream stands for."""
        ...

    def is_meaningful(self, native: Native) -> bool:
        """Say whether an event shows that the response goes on.

        A keep-alive does not, nor does an event that brings nothing: an empty delta, a role, a
        state that was known. The start of a call counts in any case, and need not be looked at.
        """
        ...


class Filter:
    """A translator around another one: it changes what goes in, or what comes out.

    `note` is told, once, that the filter did something. A filter that does nothing leaves every
    event as it is.
    """

    def __init__(self, inner: Translator, note: Note) -> None:
        self.inner = inner
        self._note = note
        self._noted: set[str] = set()

    @property
    def trailing(self) -> bool:
        """Whether only the usage can still come."""
        return self.inner.trailing

    @property
    def usage(self) -> Usage | None:
        """What was reported as billed so far."""
        return reported_usage(self.inner)

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Return the neutral events that one native event stands for."""
        return self.inner.translate(native)

    def finish(self) -> tuple[Event, ...]:
        """Return the neutral events that the clean end of the stream stands for."""
        return self.inner.finish()

    def is_meaningful(self, native: Native) -> bool:
        """Say whether an event shows that the response goes on; a keep-alive does not."""
        return self.inner.is_meaningful(native)

    def note(self, text: str) -> None:
        """Tell what was done, each thing once."""
        if text not in self._noted:
            self._noted.add(text)
            self._note(text)


def reported_usage(translator: Translator) -> Usage | None:
    """Return what `translator` was told of usage so far, where it keeps that."""
    usage = getattr(translator, "usage", None)
    return usage if isinstance(usage, Usage) else None
