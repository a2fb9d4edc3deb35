"""The hostile provider: a local server that gives an agent one scenario, and watches.

The first request that offers the tool is answered with the scenario's stream; so is each bare
retry of it. A request with anything new in its conversation gets a plain final answer.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

from agentlib.attack.apis import Api
from agentlib.attack.arguments import CALL_IDS, AttackUnusable, NotForThisTool, Target, make_target
from agentlib.attack.mutations import encode, encode_answer
from agentlib.attack.requests import Asked, history_problem, read_asked
from agentlib.attack.scenario import SILENCE_SECONDS, Ends, Scenario
from agentlib.attack.serialize import as_body, as_served, as_stream
from agentlib.conformance.dialects.common import Native
from agentlib.faultserver.server import LoopbackServer, Reply, Request
from agentlib.jsonvalues import quote, shorten
from agentlib.probe import FILE, NONCE, Execution, read

DUMMY_KEY = "sk-agentlib-attack-not-a-key"
# An agent that asks for ever is stopped by its time-out; until then it gets an error.
MAX_ANSWERS = 50
# What an agent may ask besides, by the end of the path.
_ASIDE: dict[str, Any] = {
    "/models": {
        "object": "list",
        "data": [{"id": "model", "object": "model", "created": 0, "owned_by": "agentlib"}],
    },
    "/embeddings": {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.0] * 8}],
        "model": "model",
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    },
    "/count_tokens": {"input_tokens": 1},
    "/input_tokens": {"object": "response.input_tokens", "input_tokens": 1},
}
_KEEPALIVE_SECONDS = 0.25
# What happens when all events of a scenario are sent; a silence ends by a reset.
_ENDINGS: dict[Ends, Callable[[Reply, float], Reply]] = {
    "clean": lambda reply, _: reply,
    "reset": lambda reply, _: _reset(reply),
    "held": lambda reply, _: reply.hold_open(),
    "silent": lambda reply, seconds: _reset(reply.delay(seconds, at=len(reply.body))),
    "kept alive": lambda reply, seconds: _reset(_kept_alive(reply, seconds)),
}
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


class _Watched(LoopbackServer):
    """The server, with the seconds for which each connection was held open."""

    held: list[float]

    def _note_stall(self, change: int) -> None:
        with self._changed:
            if change > 0:
                self._since[threading.get_ident()] = time.monotonic()
            else:
                self.held.append(time.monotonic() - self._since.pop(threading.get_ident()))
        super()._note_stall(change)

    def watch(self) -> Self:
        self._since: dict[int, float] = {}
        self.held = []
        return self


class HostileProvider:
    """One scenario, served to one run of an agent; enter it with a plain `with`.

    `tool` names the tool to ask for, `arguments` what to ask, made from its schema where None;
    `final_tool` is called for a final answer where the agent ends by a call. `api`, where given,
    is the only one that is answered. A silent stream stays so for `silence` seconds.

    Afterwards `asked` holds the requests to the model, `problem` says why nothing can be
    concluded, or "", and `executions` what the probe noted.
    """

    def __init__(
        self,
        scenario: Scenario,
        tool: str,
        *,
        arguments: Mapping[str, Any] | None = None,
        final_tool: str | None = None,
        api: Api | None = None,
        life: float = 600.0,
        silence: float = SILENCE_SECONDS,
    ) -> None:
        self.scenario = scenario
        self.tool = tool
        self.api = api
        self.asked: list[Asked] = []
        self.others: list[str] = []
        self.target: Target | None = None
        self.problem = ""
        self.hostile = 0
        self._arguments = arguments
        self._final_tool = final_tool
        self._first: Asked | None = None
        self._events: list[Native] = []
        self._lock = threading.Lock()
        self.silence = silence
        self._server = _Watched(self._answer, life=life).watch()
        self._nonce = token_hex(16)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.executions: list[Execution] = []

    @property
    def base_url(self) -> str:
        """The address for an OpenAI client; an Anthropic one wants it without the last /v1."""
        return self._server.base_url

    @property
    def held(self) -> float | None:
        """For how many seconds the agent held the connection that stayed open; None: none did."""
        return max(self._server.held, default=None)

    @property
    def retries(self) -> int:
        """How often the agent asked again, with nothing new, after it had got the stream."""
        return max(0, self.hostile - 1)

    @property
    def results(self) -> dict[str, str]:
        """The results that came back for the scenario's calls, by call ID: the latest text."""
        found = [pair for asked in self.asked for pair in asked.results]
        return {call_id: text for call_id, text in found if call_id in CALL_IDS}

    @property
    def history(self) -> str:
        """What was wrong with the first conversation that was not in order, or ""."""
        return next(filter(None, map(history_problem, self.asked)), "")

    @property
    def waited_out(self) -> bool:
        """Whether the agent waited through a whole silence: its own time-out did not come."""
        return self.scenario.is_silent and self.hostile > self._server.peer_closed

    def returned_nonce(self) -> int:
        """Return how many results carry the nonce, which only a tool that ran can know."""
        return sum(self._nonce in text for text in self.results.values())

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return `base` with what leads an agent here: addresses, dummy keys, and the probe."""
        root = self.base_url.removesuffix("/v1")
        kept = {name: value for name, value in base.items() if name not in _PROXIES}
        return kept | {
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_API_BASE": self.base_url,
            "OPENAI_API_KEY": DUMMY_KEY,
            "ANTHROPIC_BASE_URL": root,
            "ANTHROPIC_API_KEY": DUMMY_KEY,
            "ANTHROPIC_AUTH_TOKEN": "",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            FILE: str(self._probe_file),
            NONCE: self._nonce,
        }

    def __enter__(self) -> Self:
        """Listen on a free port of 127.0.0.1."""
        self._folder = tempfile.TemporaryDirectory(prefix="agentlib-attack-")
        self._server.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every connection, and read what the probe noted."""
        self._server.__exit__(kind, error, trace)
        self.executions = read(self._probe_file, self._nonce)
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def _probe_file(self) -> Path:
        if self._folder is None:
            raise RuntimeError("a provider has a place once its `with` has begun")
        return Path(self._folder.name, "probe.jsonl")

    # ------------------------------------------------------------------------------- answering

    def _answer(self, request: Request) -> Reply:
        with self._lock:
            asked = read_asked(request)
            if asked is None:
                return self._aside(request)
            self.asked.append(asked)
            if len(self.asked) > MAX_ANSWERS:
                return Reply.error(400, message=f"more than {MAX_ANSWERS} requests")
            if self._first is None and asked.named(self.tool) is not None:
                return self._begin(asked, request)
            first = self._first
            if first is not None and asked.entries == first.entries and asked.api == first.api:
                return self._play(asked, request) if asked.streams else _answered(asked, request)
            return _answered(asked, request, self._final(asked))

    def _begin(self, asked: Asked, request: Request) -> Reply:
        if self.api not in (None, asked.api):
            return self._refuse(f"the agent speaks the {asked.api} API, not {self.api}")
        if not asked.streams:
            return self._refuse("the agent does not stream: its request has no stream=true")
        name = asked.named(self.tool) or self.tool
        try:
            self.target = make_target(name, asked.tools[name], self._arguments)
            self._events = encode(self.scenario, self.target, asked.api)
        except (AttackUnusable, NotForThisTool) as error:
            return self._refuse(str(error))
        self._first = asked
        return self._play(asked, request)

    def _refuse(self, problem: str) -> Reply:
        self.problem = self.problem or problem
        return Reply.error(400, message=problem)

    def _play(self, asked: Asked, request: Request) -> Reply:
        self.hostile += 1
        events = as_served(self._events, asked.api, request.body or {})
        reply = Reply(body=as_stream(events, asked.api, done=self.scenario.done))
        return _ENDINGS[self.scenario.ends](reply, self.silence)

    def _final(self, asked: Asked) -> Target | None:
        name = asked.named(self._final_tool) if self._final_tool else None
        return make_target(name, asked.tools[name], None) if name else None

    def _aside(self, request: Request) -> Reply:
        self.others.append(shorten(f"{request.method} {request.path}", 100))
        for ending, body in _ASIDE.items():
            if request.path.endswith(ending):
                return _json(body)
        return Reply.error(404, message=f"an attack answers no {quote(request.path)}")


def _reset(reply: Reply) -> Reply:
    return reply.reset(at=len(reply.body))


def _kept_alive(reply: Reply, seconds: float) -> Reply:
    count = max(1, round(seconds / _KEEPALIVE_SECONDS))
    return reply.keepalives(_KEEPALIVE_SECONDS, count, at=len(reply.body))


def _answered(asked: Asked, request: Request, final: Target | None = None) -> Reply:
    events = as_served(encode_answer(asked.api, final), asked.api, request.body or {})
    if asked.streams:
        return Reply(body=as_stream(events, asked.api, done=True))
    return _json(as_body(events, asked.api))


def _json(body: Any) -> Reply:
    headers = {"content-type": "application/json"}
    return Reply(200, headers, json.dumps(body).encode(), framing="length")
