"""IDs that are made here, where a server sends none: marked, and never mistaken for its own."""

from __future__ import annotations

from agentlib.providers.fields import violation

# A server that uses this prefix itself is refused.
LOCAL = "local_"
LOCAL_RESPONSE = f"{LOCAL}response"


def local_call(number: int) -> str:
    """Return the local ID of call `number`, from 1."""
    return f"{LOCAL}call_{number}"


def is_local(an_id: str) -> bool:
    """Say whether this ID was made here: no server knows it."""
    return an_id.startswith(LOCAL)


def made_call(call_id: str) -> str:
    """Return the note that says that a call ID is synthetic."""
    return f"call-without-id: call ID {call_id} is synthetic, the server sent none"


def refuse_local(call_id: object) -> None:
    """Raise ProtocolViolation where a server uses the prefix of local IDs itself."""
    if isinstance(call_id, str) and is_local(call_id):
        raise violation(f"a call ID begins with {LOCAL}, which marks local ones", check="call_ids")
