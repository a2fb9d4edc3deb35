"""The fixture project as four tools on files held in memory, for the small loop.

A path is a key of a dict: no disk can be reached with it. Only `test` leaves this process, since
it runs the project's code. A process of its own is no sandbox.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from agentlib.conversation import Catalog, ToolCall, ToolResult
from agentlib.fixtures import tools, workspace_files
from agentlib.runtime.testrun import TEST_SECONDS, run_tests
from agentlib.runtime.workspace import ToolError


class Project:
    """The fixture project, fresh: `files` maps each path to its text, `ran` lists what was run.

    It is what the small loop takes as its tools: a `catalog`, and a way to `run` one call.
    """

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self.files = dict(workspace_files() if files is None else files)
        self.catalog: Catalog = tools()
        self.ran: list[str] = []
        self._functions: dict[str, Callable[..., str]] = {
            "list": self._list,
            "read": self._read,
            "edit": self._edit,
            "test": self._test,
        }

    def run(self, call: ToolCall) -> ToolResult:
        """Run one call and return its output; an ordinary failure is an output too."""
        self.ran.append(call.name)
        try:
            output = self._functions[call.name](**call.arguments)
        except ToolError as error:
            output = f"error: {error}"
        return ToolResult(call.call_id, output)

    def _list(self) -> str:
        return "\n".join(sorted(self.files))

    def _read(self, path: str) -> str:
        if path not in self.files:
            known = ", ".join(sorted(self.files))
            raise ToolError(f"there is no file {path!r}; there are: {known}")
        return self.files[path]

    def _edit(self, path: str, old: str, new: str) -> str:
        text = self._read(path)
        found = text.count(old) if old else 0
        if found != 1:
            raise ToolError(f"expected {old!r} once in {path}, found it {found} times")
        self.files[path] = text.replace(old, new)
        return f"edited {path}"

    def _test(self) -> str:
        with tempfile.TemporaryDirectory(prefix="agentlib-") as place:
            folder, scratch = Path(place, "project").resolve(), Path(place, "scratch").resolve()
            folder.mkdir()
            scratch.mkdir()
            for path, text in self.files.items():
                (folder / path).write_text(text, encoding="utf-8")
            return run_tests(folder, scratch, TEST_SECONDS).partition("\n")[0]
