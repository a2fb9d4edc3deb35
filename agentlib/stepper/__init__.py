"""Step through a response: its trace, the widget, what-if, saved pages, and hasty adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.stepper.abreast import Abreast as Abreast
    from agentlib.stepper.comparison import Gated as Gated
    from agentlib.stepper.comparison import compare as compare
    from agentlib.stepper.hasty import HASTY as HASTY
    from agentlib.stepper.hasty import ActsAtItemDone as ActsAtItemDone
    from agentlib.stepper.hasty import ActsWhenItParses as ActsWhenItParses
    from agentlib.stepper.hasty import FillsTheCut as FillsTheCut
    from agentlib.stepper.hasty import Hasty as Hasty
    from agentlib.stepper.replay import Replay as Replay
    from agentlib.stepper.run_frame import RunFrame as RunFrame
    from agentlib.stepper.run_recorder import RunRecorder as RunRecorder
    from agentlib.stepper.run_widget import RunStepper as RunStepper
    from agentlib.stepper.trace import Trace as Trace
    from agentlib.stepper.widget import Stepper as Stepper

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".abreast": ("Abreast",),
        ".comparison": ("Gated", "compare"),
        ".hasty": ("HASTY", "ActsAtItemDone", "ActsWhenItParses", "FillsTheCut", "Hasty"),
        ".replay": ("Replay",),
        ".run_frame": ("RunFrame",),
        ".run_recorder": ("RunRecorder",),
        ".run_widget": ("RunStepper",),
        ".trace": ("Trace",),
        ".widget": ("Stepper",),
    },
)
