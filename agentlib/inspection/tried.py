"""Which tolerances release a response: found by reading it again with each, never by guessing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from agentlib.inspection.observations import read_response
from agentlib.providers.compat import flags_for
from agentlib.reader import ResponseReader
from agentlib.recordings.events import CapturedResponse

OpenReader = Callable[..., ResponseReader]
# A server that was cut says [DONE] as well. Only one that reports what it billed had come to an
# end of its own, so that without a report a call is not released on that word.
_NEEDS_USAGE = "done-without-reason"
# Not a flag: the native form, where the portable one was asked for.
NATIVE = "native"


def flags_that_help(
    provider: str,
    response: CapturedResponse,
    open_reader: OpenReader,
    flags: Collection[str],
) -> frozenset[str]:
    """Return each further flag that alone would have released a response that was refused."""
    tried = (flag for flag in flags_for(provider) if flag not in flags)
    return frozenset(
        flag for flag in tried if releases(response, open_reader, {*flags, flag})
    ) | _native(response, open_reader, flags)


def releases(response: CapturedResponse, open_reader: OpenReader, compat: Iterable[str]) -> bool:
    """Say whether these flags release it, and nothing speaks against believing them."""
    flags = frozenset(compat)
    # Behind a gateway's error page the rest is missing, whatever was whole before it.
    if response.page:
        return False
    reader = open_reader(compat=flags)
    if read_response(reader, response) is not None:
        return False
    decision = reader.assembly.decision
    unproven = _NEEDS_USAGE in flags and decision is not None and decision.usage is None
    return not (unproven and decision is not None and decision.calls)


def _native(
    response: CapturedResponse, open_reader: OpenReader, flags: Collection[str]
) -> frozenset[str]:
    reader = open_reader(compat=frozenset(flags), native=True)
    released = read_response(reader, response) is None
    return frozenset({NATIVE}) if released else frozenset()
