"""Where the time went: seconds by component, each second in exactly one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agentlib.clock import Clock

CLOSING = "closing"


class Stopwatch:
    """Adds up the time of named components, one at a time, in `seconds`.

    `ran_out_in` is the component that ran last before any closing: where a deadline struck.
    """

    def __init__(self, clock: Clock) -> None:
        self.seconds: dict[str, float] = {}
        self.ran_out_in = ""
        self._clock = clock
        self._around = ""
        self._running = ""
        self._begun = 0.0

    def switch(self, component: str) -> None:
        """End the running component and begin this one."""
        self._begin(component)
        if component != CLOSING:
            self.ran_out_in = component

    def stop(self) -> None:
        """End the running component; the one around it goes on, if there is one."""
        self._begin(self._around)

    @contextmanager
    def within(self, component: str) -> Iterator[None]:
        """Give to `component` each second of the body that no other component is given."""
        outer = self._around
        self.switch(component)
        self._around = component
        try:
            yield
        finally:
            self._begin(outer)
            self._around = outer

    def move(self, seconds: float, component: str, to: str) -> None:
        """Take seconds from one component, as many as it has at most, and give them to another."""
        moved = min(seconds, self.seconds.get(component, 0.0))
        self._add(component, -moved)
        self._add(to, moved)

    def _begin(self, component: str) -> None:
        now = self._clock.now()
        # What only stands around others is named where it took time of its own.
        if self._running and (now > self._begun or self._running != self._around):
            self._add(self._running, now - self._begun)
        self._running, self._begun = component, now

    def _add(self, component: str, seconds: float) -> None:
        self.seconds[component] = self.seconds.get(component, 0.0) + seconds
