"""What an error of the SDK's HTTP library says of the request: in which phase it failed.

The errors are known by their names, so that neither library is loaded for it.
"""

from __future__ import annotations

from agentlib.errors import OpenFailure, Sent
from agentlib.scrubbing import chain

# Errors that the SDK calls a failed connection, and that the same request would meet again.
NOT_OF_THE_NETWORK = frozenset({"LocalProtocolError", "TooManyRedirects", "UnsupportedProtocol"})
# In which phase of a request the HTTP library failed. What is not here was perhaps sent: an error
# of writing, since part of it left, and every one of reading.
PHASES: dict[str, Sent] = {
    "ConnectError": "not sent",
    "ConnectTimeout": "not sent",
    "InvalidURL": "not sent",
    "LocalProtocolError": "not sent",
    "PoolTimeout": "not sent",
    "ProxyError": "not sent",
    "UnsupportedProtocol": "not sent",
    "ReadError": "perhaps sent",
    "ReadTimeout": "perhaps sent",
    "RemoteProtocolError": "perhaps sent",
    "WriteError": "perhaps sent",
    "WriteTimeout": "perhaps sent",
    "TooManyRedirects": "answered",
}


def describe(error: BaseException) -> str:
    """Return the kinds of an error and its causes, without their texts: these may hold secrets."""
    names: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(names) < 4:
        names.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    return ", from ".join(dict.fromkeys(names))


def unanswered(error: Exception) -> OpenFailure:
    """Return the failure that an error is which came in place of an answer."""
    sent = sent_by(error)
    what = "no connection" if sent == "not sent" else f"no answer to a request that was {sent}"
    lasts = any(type(each).__name__ in NOT_OF_THE_NETWORK for each in chain(error))
    return OpenFailure(f"{what}: {describe(error)}", retryable=not lasts, sent=sent)


def sent_by(error: BaseException) -> Sent:
    """Return what is known of a request that ended in this error."""
    # The nearest error is the one that ended the request; those behind it may be of earlier tries.
    known = (PHASES.get(type(each).__name__) for each in chain(error))
    return next((sent for sent in known if sent is not None), "perhaps sent")
