"""What an approval is of: one call, in its place, in one run as it stood when it was asked for.

An approval that names a call by its ID approves whatever stands under that ID when the run is
resumed. So it names a digest: of the call, its arguments and its place, and of all else that was
saved with it. A seal is the same with a key, for whoever cannot keep others from the store.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any, NamedTuple

from agentlib.conversation import ToolCall


class Waiting(NamedTuple):
    """A call that waits for a person: why, and the digest by which it is approved or denied."""

    call: ToolCall
    reason: str
    digest: str


def digest(state: dict[str, Any], place: int) -> str:
    """Return the SHA-256, in hexadecimal digits, of the pending call in `place` of a state.

    `state` is a saved run as plain JSON values; how its text is laid out does not matter.
    """
    call = state["pending"]["calls"][place]
    named = {"state": state, "turn": state["account"]["turns"], "place": place, "call": call}
    return hashlib.sha256(_canonical(named)).hexdigest()


def seal(state: dict[str, Any], key: bytes) -> str:
    """Return the HMAC-SHA-256 of a state by `key`, in hexadecimal digits."""
    return hmac.new(key, _canonical(state), hashlib.sha256).hexdigest()


def is_sealed(state: dict[str, Any], found: str, key: bytes) -> bool:
    """Say whether `found` is the seal of a state by `key`."""
    return hmac.compare_digest(seal(state, key).encode(), found.encode())


def _canonical(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")
