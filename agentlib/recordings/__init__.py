"""Recorded streams: read, edited, redacted, written and played again. Nothing here decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.recordings.capture import Capture as Capture
    from agentlib.recordings.recorder import Recorder as Recorder
    from agentlib.recordings.redaction import Redactor as Redactor
    from agentlib.recordings.replay_transport import Playback as Playback
    from agentlib.recordings.replay_transport import Refusal as Refusal

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".capture": ("Capture",),
        ".recorder": ("Recorder",),
        ".redaction": ("Redactor",),
        ".replay_transport": ("Playback", "Refusal"),
    },
)
