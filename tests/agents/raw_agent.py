"""An agent without any SDK: http.client, one decider, two tools. A function, and a script.

    python raw_agent.py chat gate

The decider is told every event and the end of a stream, and says which calls run: the gate, or one
that is in a hurry.
"""

import http.client
import json
import os
import sys
import time
from urllib.parse import urlsplit

from agentlib import (
    Catalog,
    ResponseFailure,
    ResponseReader,
    ToolCall,
    ToolResult,
    ToolSpec,
    assistant,
    probe,
    user,
)
from agentlib.jsonvalues import FrozenObject
from agentlib.providers.registry import find_provider
from agentlib.sse import DONE_EVENT, EventStreamDecoder, decode_event

PATHS = {"responses": "/responses", "chat": "/chat/completions", "messages": "/messages"}
RESET = {
    "type": "object",
    "properties": {"level": {"type": "integer"}},
    "additionalProperties": False,
}
TOOLS = Catalog(
    [
        ToolSpec.strings("edit", "Change a file.", path="", old="", new=""),
        ToolSpec("reset", "Go back to a level.", FrozenObject(RESET)),
    ]
)
MAX_TURNS = 4
# How long it waits for the next event, in seconds.
PATIENCE = 0.5


class Gate:
    """The project's own reader: it releases all calls of a whole response, or none."""

    def __init__(self, api):
        self._reader = ResponseReader(api, TOOLS)
        self._decision = None
        self.text = ""

    def accept(self, event):
        return self._take(self._reader.accept(event))

    def end(self, done):
        if done:
            self._reader.accept(DONE_EVENT)
        return self._take(self._reader.end())

    def _take(self, decision):
        if decision is None:
            return []
        self.text = decision.text
        return [(call.call_id, call.name, dict(call.arguments)) for call in decision.calls]


def execute(name, arguments):
    """Run a known tool with whatever it is given: it checks nothing, and changes nothing."""
    if name not in TOOLS.names:
        return f"error: there is no tool {name}"
    probe.ran(name, **arguments)
    return f"{name} done"


def run(api, decider, execute=execute):
    """Ask until a response holds no call that the decider lets run; return the final text."""
    history = [user("Please repair add().")]
    for _ in range(MAX_TURNS):
        decide = decider(api)
        # Each is executed at once: who decides in a hurry does not wait for the end.
        done = [(call, execute(call.name, call.arguments)) for call in ask(api, history, decide)]
        if not done:
            return decide.text
        history.append(assistant("", [call for call, _ in done]))
        history += [ToolResult(call.call_id, output) for call, output in done]
    return "out of turns"


def ended(api, decider):
    """Say whether the run ended well."""
    try:
        run(api, decider)
    except ResponseFailure:
        return False
    return True


def ask(api, history, decide):
    """Yield the calls that run, as soon as the decider says so."""
    name = "ANTHROPIC_BASE_URL" if api == "messages" else "OPENAI_BASE_URL"
    root = urlsplit(os.environ[name])
    path = root.path + ("/v1" if api == "messages" else "") + PATHS[api]
    body = json.dumps(find_provider(api).encode("model", history, TOOLS)).encode()
    connection = http.client.HTTPConnection(root.hostname, root.port, timeout=20)
    answer = None
    try:
        connection.request("POST", path, body, {"content-type": "application/json"})
        sock = connection.sock
        answer = connection.getresponse()
        if answer.status != 200:
            raise SystemExit(f"status {answer.status}: {answer.read(500)!r}")
        sock.settimeout(PATIENCE)
        decoder, done, latest = EventStreamDecoder(), False, time.monotonic()
        while piece := answer.read1(65536):
            for event in decoder.feed(piece):
                latest, done = time.monotonic(), done or event.done
                if not (event.empty or event.done):
                    yield from calls(decide.accept(decode_event(event)))
            expect_more(latest)
            if done:
                break
            if decided(decide):
                return
        yield from calls(decide.end(done))
    except TimeoutError:
        if not hasattr(decide, "silent"):
            raise
        yield from calls(decide.silent())
    finally:
        connection.close()
        if answer is not None:
            answer.close()


def expect_more(latest):
    """Keep-alives are no events: refuse to wait for them for long."""
    if time.monotonic() - latest > PATIENCE:
        raise TimeoutError("the connection lives, and no event comes")


def calls(decided):
    return (ToolCall(call_id, name, FrozenObject(given)) for call_id, name, given in decided)


def decided(decide):
    """Whether the rest of the stream is not waited for."""
    reader = getattr(decide, "_reader", None)
    return reader is not None and reader.assembly.state in ("released", "discarded")


if __name__ == "__main__":
    from deciders import DECIDERS

    try:
        sys.stdout.write(f"{run(sys.argv[1], DECIDERS[sys.argv[2]])}\n")
    except (ResponseFailure, OSError) as refused:
        sys.exit(f"{type(refused).__name__}: {refused}")
