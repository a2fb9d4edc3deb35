"""A run of decisions for a lesson: a file of three lines, and a script in place of a model.

The script is authored here: it edits before it has looked, says something that is no decision,
and claims to be done too early.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agentlib.decisions.context import DecisionContext
from agentlib.decisions.runner import DecisionRunner
from agentlib.decisions.scripted import Reply, ScriptedModelClient
from agentlib.runtime.workspace import ToolError
from workbook.pages.decision_replies import EDIT, Edit, Read

SOURCE = "def add(a, b):\n    return a - b\n"


def decision(kind: str, **fields: Any) -> str:
    """Return a reply that holds one decision, as one JSON object."""
    return json.dumps({"thought": "", "action": {"kind": kind, **fields}})


_NAME, _ARGUMENTS = EDIT
REPAIR = decision("tool", name=_NAME, input=_ARGUMENTS)
LOOK = decision("tool", name="read", input={"path": "calculator.py", "lines": 2})
MISSING = decision("tool", name="read", input={"path": "adder.py", "lines": 2})
DONE = decision("final_answer", answer="add() adds now.")
QUESTION = decision("ask_user", question="Which add()?")
REPLIES: tuple[Reply, ...] = (REPAIR, MISSING, "I look at it first.", LOOK, DONE, REPAIR, DONE)


def repairing(replies: Sequence[Reply] = REPLIES) -> DecisionRunner:
    """Return a runner on a new file; until it was read, no edit is admitted."""
    files = {"calculator.py": SOURCE}

    def read(given: Read) -> str:
        if given.path not in files:
            raise ToolError(f"there is no file {given.path}")
        return "\n".join(files[given.path].splitlines()[: given.lines])

    def edit(given: Edit) -> str:
        files[given.path] = files[given.path].replace(given.old, given.new)
        return "edited"

    def verify(_answer: str, _context: DecisionContext) -> str | None:
        return None if "a + b" in files["calculator.py"] else "add() still subtracts"

    def admit(context: DecisionContext) -> tuple[str, ...]:
        looked = any("return" in seen.result for seen in context.observations)
        return ("read", "edit") if looked else ("read",)

    client = ScriptedModelClient(replies)
    return DecisionRunner(client, {"read": read, "edit": edit}, verify, admit=admit)
