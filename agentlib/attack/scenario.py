"""What a scenario of an attack is: one stream, as data; and the names of some of them.

Each has a stable name. Its `kind` is the diagnosis of such a stream
(`agentlib.inspection.diagnoses`), and `check` the gate's check that refuses it, both as
`agentlib inspect` prints them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentlib.attack.apis import APIS, Api
from agentlib.conformance.script import Stop

Ends: TypeAlias = Literal["clean", "reset", "held", "silent", "kept alive"]

# For how long a silent stream stays so, where nothing else is said.
SILENCE_SECONDS = 15.0
# The chapters that explain them.
PROGRESS = "03_progress_is_not_completion"
ALL_OR_NOTHING = "04_release_all_or_nothing"
OPENING_ONLY = "05_retry_the_opening_only"
LABORATORY = "06_failure_laboratory"
VOCABULARY = "07_one_vocabulary_many_providers"

GOOD_CALL = "good-call"
GOOD_TEXT = "good-text"
HELD_OPEN = "held-open"
USAGE_TWICE = "usage-on-every-event"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One stream that an agent is given.

    `meaning` says in one sentence what it means to run the tool here, and `chapter` explains it.
    `calls` names the form of each call's arguments (`agentlib.attack.arguments.FORMS`),
    `restates` the forms that the end restates instead, `stop` how the script ends, `mutations`
    what is done to its events (`agentlib.attack.mutations.MUTATIONS`), and `ends` how the
    connection does; `done` is whether Chat's `[DONE]` comes. `optional` asks for a tool that
    requires no argument. `may_run` is how often the tool may run.
    """

    name: str
    title: str
    meaning: str
    check: str
    chapter: str = PROGRESS
    calls: tuple[str, ...] = ("whole",)
    stop: Stop = "complete"
    mutations: tuple[str, ...] = ()
    restates: tuple[str, ...] = ()
    ends: Ends = "clean"
    done: bool = True
    apis: tuple[Api, ...] = APIS
    optional: bool = False
    may_run: int = 0
    kind: str = ""

    @property
    def is_silent(self) -> bool:
        """Whether nothing comes any more, for as long as the attack's `silence`, before its end."""
        return self.ends in ("silent", "kept alive")

    @property
    def is_control(self) -> bool:
        """Whether it is a good stream, without which nothing follows for the others."""
        return self.name in (GOOD_CALL, GOOD_TEXT)
