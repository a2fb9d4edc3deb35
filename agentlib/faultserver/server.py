"""A local server that misbehaves on purpose: real sockets, scripted faults, exact to the byte.

    with LoopbackServer(Reply.stream(capture).reset(at=500)) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="any", max_retries=0)

It speaks just enough HTTP/1.1 (RFC 9112) for one request on each connection, listens on 127.0.0.1
alone, and runs in threads of its own: a cell, a plain test and an async one use it alike. It
counts what a client opened and closed: no client can be trusted to count that itself.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias

from agentlib.faultserver.connection import PeerClosed, ServerEnded, Wire, play
from agentlib.faultserver.replies import HEAD, Fault, Reply
from agentlib.faultserver.requests import Refused, Request, read_request, refuse_unknown

__all__ = ["HEAD", "Fault", "LoopbackServer", "Reply", "Request"]

# More connections than any lesson opens; further ones wait.
MAX_CONNECTIONS = 64
# A server that was forgotten ends by itself.
MAX_LIFE_SECONDS = 600.0


Plan: TypeAlias = Reply | Iterable[Reply] | Callable[[Request], Reply]


class LoopbackServer:
    """Answers the n-th request by the n-th reply of its plan, and later ones by the last.

    A request that is no JSON object posted to one of PATHS is answered 4xx, outside the plan. A
    plan may also be a function from any request to its reply, called in a thread of the server.
    Enter it once, with a plain `with`; leaving it ends every connection and joins every thread.

    `requests` are those received, without their headers. `opened` counts the connections
    accepted; `closed` those of them that are over on both sides, because the client closed or the
    server reset: after the `with`, `opened == closed` means that the client left none open.
    `peer_closed` counts those that the client closed before the answer had ended, and `stalled`
    is how many now wait in a stall.
    """

    def __init__(self, plan: Plan, *, life: float = MAX_LIFE_SECONDS) -> None:
        self._choose = plan if callable(plan) else None
        replies = () if callable(plan) else plan
        self.plan = (replies,) if isinstance(replies, Reply) else tuple(replies)
        if not self.plan and self._choose is None:
            raise ValueError("expected at least one reply")
        self.requests: list[Request] = []
        self.opened = 0
        self.closed = 0
        self.peer_closed = 0
        self.stalled = 0
        self._life = life
        self._alive = 0
        self._planned = 0
        self._ending = False
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._running: _Running | None = None
        self._port = 0

    @property
    def base_url(self) -> str:
        """The address to give a client; after the `with`, nothing listens there."""
        if not self._port:
            raise RuntimeError("a server has an address once its `with` has begun")
        return f"http://127.0.0.1:{self._port}/v1"

    def wait_until(self, condition: Callable[[LoopbackServer], bool], timeout: float = 5.0) -> None:
        """Block until `condition(server)` holds; it is asked again whenever a count changes.

        Raises TimeoutError after `timeout` seconds. Async code calls this in a worker thread.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), timeout):
                raise TimeoutError(f"not within {timeout:g} s: {self!r}")

    def wait_idle(self, timeout: float = 5.0) -> None:
        """Block until every connection is over on both sides. Raises TimeoutError as above."""
        self.wait_until(lambda server: server.opened == server.closed, timeout)

    def __enter__(self) -> Self:
        """Listen on a free port."""
        if self._port:
            raise RuntimeError("a server runs once; make another one")
        listener = socket.create_server(("127.0.0.1", 0), backlog=MAX_CONNECTIONS)
        listener.setblocking(False)
        self._port = listener.getsockname()[1]
        alarm, trigger = socket.socketpair()
        deadline = time.monotonic() + self._life
        acceptor = threading.Thread(
            target=self._accept,
            args=(listener, alarm, deadline),
            name="agentlib-loopback",
            daemon=True,
        )
        self._running = _Running(acceptor, alarm, trigger)
        acceptor.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every connection and every thread; nothing listens or runs afterwards."""
        running, self._running = self._running, None
        if running is None:
            return
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        running.trigger.close()
        running.acceptor.join()
        for thread in self._threads:
            thread.join()
        running.alarm.close()

    def _accept(self, listener: socket.socket, alarm: socket.socket, deadline: float) -> None:
        with listener, selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            selector.register(alarm, selectors.EVENT_READ)
            while self._has_room(deadline):
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready or any(key.fileobj is alarm for key, _ in ready):
                    return
                with suppress(BlockingIOError, ConnectionError):
                    sock, _ = listener.accept()
                    self._start(sock, alarm, deadline)

    def _has_room(self, deadline: float) -> bool:
        with self._changed:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            return self._changed.wait_for(
                lambda: self._ending or self._alive < MAX_CONNECTIONS,
                max(0.0, deadline - time.monotonic()),
            )

    def _start(self, sock: socket.socket, alarm: socket.socket, deadline: float) -> None:
        with self._changed:
            self.opened += 1
            self._alive += 1
            name = f"agentlib-loopback-{self.opened}"
            self._changed.notify_all()
        wire = Wire(sock, alarm, deadline, self._note_stall)
        thread = threading.Thread(target=self._serve, args=(wire,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, wire: Wire) -> None:
        closed = peer_closed = False
        try:
            self._answer(wire)
            closed = True
        except PeerClosed:
            closed = peer_closed = True
        except ServerEnded:
            closed = peer_closed = wire.is_closed_by_peer()
        finally:
            wire.close()
            with self._changed:
                self._alive -= 1
                self.closed += closed
                self.peer_closed += peer_closed
                self._changed.notify_all()

    def _answer(self, wire: Wire) -> None:
        try:
            reply = self._take(read_request(wire))
        except Refused as refused:
            reply = Reply.error(refused.status, message=str(refused))
        play(reply, wire)

    def _take(self, request: Request) -> Reply:
        with self._changed:
            request = replace(request, number=len(self.requests) + 1)
            self.requests.append(request)
            self._changed.notify_all()
            if self._choose is None:
                refuse_unknown(request)
                self._planned += 1
                return self.plan[min(self._planned, len(self.plan)) - 1]
        return self._choose(request)

    def _note_stall(self, change: int) -> None:
        with self._changed:
            self.stalled += change
            self._changed.notify_all()

    def __repr__(self) -> str:
        counts = ("opened", "closed", "peer_closed", "stalled")
        shown = [f"{name}={getattr(self, name)}" for name in counts]
        return f"LoopbackServer(requests={len(self.requests)}, {', '.join(shown)})"


class _Running(NamedTuple):
    acceptor: threading.Thread
    alarm: socket.socket  # readable from the moment at which the trigger is closed
    trigger: socket.socket
