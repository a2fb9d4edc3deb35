"""Where the time went: seconds by component, added up on one clock."""

from __future__ import annotations

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
        self._running = ""
        self._begun = 0.0

    def switch(self, component: str) -> None:
        """End the running component and begin this one."""
        self.stop()
        self._running, self._begun = component, self._clock.now()
        if component != CLOSING:
            self.ran_out_in = component

    def stop(self) -> None:
        """End the running component, if any."""
        if self._running:
            self.add(self._running, self._clock.now() - self._begun)
        self._running = ""

    def add(self, component: str, seconds: float) -> None:
        """Count seconds that were measured elsewhere."""
        self.seconds[component] = self.seconds.get(component, 0.0) + seconds
