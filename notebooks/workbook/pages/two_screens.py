"""Two screens beside one run: what its observers see as it comes, and what the user is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from agentlib.conversation import ToolCall
from agentlib.jsonvalues import quote
from agentlib.recordings.capture import Capture
from agentlib.recordings.replay_transport import Playback
from agentlib.runtime.events import Executed, Failed, Repaired
from agentlib.runtime.publication import Committed, Narration, Publication
from agentlib.runtime.receipts import Receipt
from agentlib.tables import Table, table
from workbook.pages.simulation import FIRST_EVENT, Stage, Step, streamed
from workbook.pages.small_loop import said

# A fragment has this many words, and takes this many seconds.
WORDS, FRAGMENT = 3, 0.2


def spoken(text: str, *calls: ToolCall, cut: bool = False) -> Playback:
    """Return a response that says `text` in fragments of three words and asks for `calls`.

    `cut` ends its stream before the last event.
    """
    natives = list(_in_fragments(event.data for event in streamed(said(text, *calls)).events))
    paused = [
        number
        for number, native in enumerate(natives, 1)
        if native["type"] in ("response.output_text.delta", "response.completed")
    ]
    stream = Capture.from_events(natives[:-1] if cut else natives, "spoken", "responses")
    pauses = {1: FIRST_EVENT, **dict.fromkeys(paused, FRAGMENT)}
    return Playback(stream.responses[0], pauses=pauses)


def _in_fragments(natives: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    number = 0
    for native in natives:
        whole = native.get("delta")
        spoken = native["type"] == "response.output_text.delta" and isinstance(whole, str)
        for change in [{"delta": each} for each in _fragments(str(whole))] if spoken else [{}]:
            yield {**native, **change, "sequence_number": number}
            number += 1


def _fragments(text: str) -> list[str]:
    words = [word for word in text.split(" ") if word]
    groups = [words[n : n + WORDS] for n in range(0, len(words), WORDS)]
    return [" ".join(group) + (" " if n < len(groups) else "") for n, group in enumerate(groups, 1)]


class Screens(Stage):
    """A stage whose run is shown on two screens; its form is a table of who saw what, and when.

    `naive` is what a user reads whose screen is plugged into the draft.
    """

    def __init__(
        self,
        *script: Step,
        narration: Narration = "publish",
        harmless: Callable[[str], bool] = lambda _: False,
        **how: Any,
    ) -> None:
        self.lines: list[tuple[float, str, str, str]] = []
        publication = Publication(
            draft=self._drafted, commit=self._committed, narration=narration, harmless=harmless
        )
        super().__init__(*script, publication=publication, **how)

    @property
    def naive(self) -> str:
        """Everything that was streamed as text, on one screen."""
        return "".join(draft for _, draft, _, _ in self.lines)

    def _drafted(self, fragment: str) -> None:
        self.lines.append((self.clock.now(), fragment, "", ""))

    def _committed(self, text: Committed) -> None:
        self.lines.append((self.clock.now(), "", f"{text.kind}: {text.text}", ""))

    def _steps(self) -> Iterator[tuple[float, str, str, str]]:
        for at, event in self.recorder.told:
            if isinstance(event, Executed):
                execution = event.execution
                output = execution.output.partition("\n")[0]
                yield at, "", "", f"{execution.call.name}: {output}"
            elif isinstance(event, Failed):
                yield at, "", "", "no decision: the response is discarded"
            elif isinstance(event, Repaired):
                yield at, "", "", f"asked again: {event.repair.reason.replace('_', ' ')}"

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def _table(self) -> Table:
        lines = sorted((*self._steps(), *self.lines), key=lambda line: line[0])
        rows = ((f"{at:.1f} s", draft and quote(draft), *rest) for at, draft, *rest in lines)
        return table("at, draft, the user sees, the loop", rows)


async def show(*script: Step, **how: Any) -> Screens:
    """Play a run before two screens, and return them when it has ended."""
    screens = Screens(*script, **how)
    await screens.start()
    return screens


def held(receipts: Sequence[Receipt]) -> Table:
    """Return receipts as a table: what is known of each call, and what may be claimed."""
    rows = (
        (
            receipt.call_id,
            receipt.name,
            receipt.state,
            receipt.recorded,
            "yes" if receipt.succeeded else "no",
            receipt.allowed_claim,
        )
        for receipt in receipts
    )
    return table("call, tool, state, recorded, succeeded, may be claimed", rows)
