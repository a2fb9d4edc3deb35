"""Bytes as they come from a live stream, in any chunks, and what a reader makes of them."""

import json
from itertools import pairwise

from agentlib.failures import ResponseFailure
from agentlib.providers.registry import PROVIDERS
from agentlib.reader import ResponseReader
from agentlib.sse import DONE_EVENT, EventStreamDecoder, EventStreamError, decode_event


def sse(*events):
    lines = ("[DONE]" if event is None else json.dumps(event) for event in events)
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def chunks(source, rng):
    edges = sorted(rng.randrange(len(source) + 1) for _ in range(rng.randrange(6)))
    return [source[a:b] for a, b in pairwise([0, *edges, len(source)])]


def decoded(pieces):
    """Yield each event, DONE_EVENT for a marker, and at last the reason why decoding stopped."""
    decoder, stopped = EventStreamDecoder(), None
    found = []
    try:
        for piece in pieces:
            found += decoder.feed(piece)
    except EventStreamError as error:
        found, stopped = [*found, *error.events], error.reason
    try:
        for event in found:
            if event.done:
                yield DONE_EVENT
            elif not event.empty:
                yield decode_event(event)
    except EventStreamError as error:
        stopped = error.reason
    if stopped is not None:
        yield stopped


def live(provider, events, catalog):
    """Return what a reader makes of all events, to the end of the stream, whatever they hold."""
    reader = ResponseReader(
        provider if provider in PROVIDERS else "responses", catalog, native=True
    )
    decision = None
    try:
        for event in events:
            if isinstance(event, str):
                reader.fault(event)
            else:
                decision = reader.accept(event) or decision
        decision = reader.end() or decision
    except ResponseFailure as failure:
        return "rejected", failure.check, failure.reason, failure.event, ()
    return "released", None, None, None, decision.calls
