"""The diagnoses of Gemini alone."""

from __future__ import annotations

from agentlib.inspection.diagnosis import Diagnosis
from agentlib.inspection.observations import Seen, objects, record
from agentlib.jsonvalues import quote


def call_goes_on(seen: Seen) -> str | None:
    """It says STOP while its last call says that it will continue."""
    if not seen.is_gemini or seen.stop != "STOP" or not seen.evidence.buffers:
        return None
    parts = [
        part
        for candidate in seen.candidates
        for part in objects(record(candidate.get("content")).get("parts"))
    ]
    calls = [record(part["functionCall"]) for part in parts if "functionCall" in part]
    if not calls or calls[-1].get("willContinue") is not True:
        return None
    return f"its finish reason is STOP, and call {quote(seen.evidence.buffers[-1].name)} goes on"


ROWS = (
    Diagnosis(
        "call-goes-on",
        "It says STOP while a call goes on",
        "Gemini, whose calls come in pieces, and gateways that drop a part without content.",
        "read it with --compat unended-call and --tools: only a schema shows that it is whole",
        call_goes_on,
        flag="unended-call",
        otherwise="run nothing of it; only with --tools can a schema show that the call is whole",
    ),
)
