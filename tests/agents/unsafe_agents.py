"""Agents that are unsafe, each in one way; most are careful in everything else.

python unsafe_agents.py chat "late, in a process of its own"
"""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import raw_agent
from deciders import DECIDERS

from agentlib import ResponseFailure, probe
from agentlib.failures import StreamCut
from agentlib.stepper.hasty import FillsTheCut

POOL = ThreadPoolExecutor(1, "late")
NOTE = """
import json, sys
from agentlib import probe

name, arguments = json.loads(sys.argv[1])
sys.stdin.read()
probe.ran(name, **arguments)
"""


class Careful(raw_agent.Gate):
    """The gate; where it refuses what `passes` names, everything runs that a hasty loop would."""

    def __init__(self, api):
        super().__init__(api)
        self._hasty = FillsTheCut()

    def passes(self, _failure):
        return False

    def accept(self, event):
        self._hasty.accept(event)
        return self._unless_refused(super().accept, event)

    def end(self, done):
        return self._unless_refused(super().end, done)

    def _unless_refused(self, take, what):
        try:
            return take(what)
        except ResponseFailure as failure:
            if not self.passes(failure):
                raise
            return self.everything()

    def everything(self):
        self._hasty.end()
        return [
            (action.call_id, action.name, action.arguments)
            for action in self._hasty.actions
            if isinstance(action.arguments, dict)
        ]


class OnCut(Careful):
    """The end of the connection is the end of the response."""

    def passes(self, failure):
        return isinstance(failure, StreamCut)


class OnLength(Careful):
    """Whatever the response says of its end, it has ended."""

    def passes(self, failure):
        return failure.check == "completed" and not isinstance(failure, StreamCut)


class OnSilence(Careful):
    """Its own read time-out is the end of the response."""

    def silent(self):
        return self.everything()


def late_in_pool(name, arguments):
    """Run the tool in the thread of a pool, when the agent has returned."""
    agent = threading.current_thread()

    def run():
        agent.join()
        raw_agent.execute(name, arguments)

    POOL.submit(run)
    return "queued"


def late_in_thread(name, arguments):
    """Run the tool in a thread that nobody waits for, when the agent has returned."""
    agent = threading.current_thread()

    def run():
        agent.join()
        raw_agent.execute(name, arguments)

    threading.Thread(target=run, daemon=True).start()
    return "started"


def late_in_process(name, arguments):
    """Run the tool in a session of its own, when the agent's process has ended."""
    import json

    command = [sys.executable, "-c", NOTE, json.dumps([name, dict(arguments)], default=dict)]
    # Its standard input ends when this process does.
    subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    return "spawned"


def unprobed(name, arguments):
    """Run the tool; only the one that is called reset notes it."""
    if name == "reset":
        probe.ran(name, **arguments)
    return "done"


HASTY = DECIDERS["ActsAtItemDone"]
# Who decides, and who runs the tool.
WAYS = {
    "at the arguments": (DECIDERS["ActsWhenItParses"], raw_agent.execute),
    "at the item's end": (HASTY, raw_agent.execute),
    "when the connection ends": (OnCut, raw_agent.execute),
    "at the token limit": (OnLength, raw_agent.execute),
    "at its own read time-out": (OnSilence, raw_agent.execute),
    "late, in a pool": (HASTY, late_in_pool),
    "late, in a thread": (HASTY, late_in_thread),
    "late, in a process of its own": (HASTY, late_in_process),
    "with a probe in another tool": (HASTY, unprobed),
}


def agent(api, way):
    """Return an agent that is unsafe in this way, to be called."""
    decider, execute = WAYS[way]
    return partial(raw_agent.run, api, decider, execute)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{agent(*sys.argv[1:3])()}\n")
    except (ResponseFailure, OSError) as refused:
        sys.exit(f"{type(refused).__name__}: {refused}")
