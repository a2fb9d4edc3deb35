"""Small projects for a workspace, and tests that hang or leave something running."""

import os
import select
from contextlib import ExitStack, contextmanager

from agentlib.conversation import ToolCall
from agentlib.runtime.workspace import Workspace


def call(name, **arguments):
    return ToolCall("call_1", name, arguments)


@contextmanager
def entering(folder):
    """Enter workspaces: of the fixture, or of files made in `folder`, `{"a.py": b"..."}`."""
    with ExitStack() as stack:

        def enter(contents=None, **options):
            for name, data in (contents or {}).items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            source = folder if contents else None
            return stack.enter_context(Workspace(source, **options))

        yield enter


def python_test(body):
    return {"test_it.py": f"import os, subprocess, sys, time, unittest\n{body}\n".encode()}


# A process and its child that hold a pipe open: who reads it sees its end once both are gone.
HOLDING = """
pipe = open("pipe", "w")
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"],
                         pass_fds=[pipe.fileno()])
pipe.write("started\\n")
pipe.flush()
"""
HANGING = python_test(f"{HOLDING}time.sleep(60)")


class Pipe:
    """The reading end of a pipe that the tests of a workspace hold open."""

    def __init__(self, place):
        os.mkfifo(place.root / "pipe")
        self._fd = os.open(place.root / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    def is_started(self, seconds=0.0):
        return bool(select.select([self._fd], [], [], seconds)[0])

    def wait_started(self):
        assert self.is_started(30)
        assert os.read(self._fd, 100) == b"started\n"

    def wait_nobody_holds_it(self):
        assert self.is_started(5)
        assert os.read(self._fd, 1) == b""

    def close(self):
        os.close(self._fd)
