"""The context packet: all that a model is given to make one decision from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from agentlib.conversation import Catalog, ToolSpec
from agentlib.decisions.model import Action, ToolCall
from agentlib.errors import CatalogError
from agentlib.jsonvalues import FrozenObject, dumps, one_line, quote, shorten
from agentlib.providers.requests import TOOL_NAME

# The two actions that are no tool are functions too, in a request with native calls.
FINAL_ANSWER = ToolSpec.strings(
    "final_answer",
    "Propose that the task is done. The proposal is verified before anybody relies on it.",
    answer="The whole answer.",
)
ASK_USER = ToolSpec.strings(
    "ask_user",
    "Ask the user one question, where nothing else leads further.",
    question="The question.",
)
RESERVED = frozenset({FINAL_ANSWER.name, ASK_USER.name})
MAX_PROBLEMS = 4


@dataclass(frozen=True, slots=True)
class DecisionTool:
    """A tool that is admitted: `input` is the pydantic model of what it takes.

    Raises CatalogError where no API could carry the name, or the schema cannot be made.
    """

    name: str
    description: str
    input: type[BaseModel]

    def __post_init__(self) -> None:
        if not TOOL_NAME.fullmatch(self.name) or self.name in RESERVED:
            others = " or ".join(sorted(RESERVED))
            raise CatalogError(
                f"tool {quote(self.name)}: expected a name of 1 to 64 letters, digits, - or _, "
                f"and not {others}"
            )

    def spec(self) -> ToolSpec:
        """Return the tool as the model sees it, with the schema that pydantic makes."""
        try:
            schema = self.input.model_json_schema()
        except Exception as error:  # a field of a type that JSON does not know
            raise CatalogError(f"tool {quote(self.name)}: its input has no schema") from error
        return ToolSpec(self.name, self.description, FrozenObject(schema))

    def validate(self, value: Mapping[str, Any]) -> BaseModel:
        """Return `value`, a JSON object, as the tool's own model, in pydantic's strict mode.

        Raises pydantic's ValidationError, or whatever a validator of the tool's own raises.
        """
        return self.input.model_validate_json(dumps(value), strict=True)

    def problem(self, value: Mapping[str, Any]) -> str | None:
        """Return what is wrong with `value`, or None."""
        try:
            self.validate(value)
        except ValidationError as error:
            return problems(error)
        except Exception as error:  # noqa: BLE001 - a validator of the tool's own may raise anything
            return f"its validator raised {type(error).__name__}"
        return None


@dataclass(frozen=True, slots=True)
class Observation:
    """An earlier action, and what came of it: a result, an answer, or why it was not accepted."""

    action: Action
    result: str
    thought: str = ""


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What a model decides from: the task, what was done so far, and the tools it may call.

    `interactive` is whether a user can be asked. Raises CatalogError where a tool stands twice.
    """

    task: str
    tools: tuple[DecisionTool, ...] = ()
    observations: tuple[Observation, ...] = ()
    instructions: str = ""
    interactive: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", tuple(self.tools))
        object.__setattr__(self, "observations", tuple(self.observations))
        self.catalog(native_tools=True)

    def tool(self, name: str) -> DecisionTool | None:
        """Return the admitted tool of exactly this name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def catalog(self, *, native_tools: bool) -> Catalog:
        """Return what a request exposes: every shape of decision as a function, or nothing."""
        if not native_tools:
            return Catalog()
        return Catalog([*(tool.spec() for tool in self.tools), FINAL_ANSWER, ASK_USER])

    def problem(self, call: ToolCall) -> str | None:
        """Return why `call` cannot be admitted, in one sentence for the model, or None."""
        tool = self.tool(call.name)
        if tool is None:
            names = ", ".join(tool.name for tool in self.tools) or "none"
            return f"tool {quote(call.name)} is not admitted (admitted: {names})"
        wrong = tool.problem(call.input)
        return f"input of {quote(call.name)}: {wrong}" if wrong else None


def problems(error: ValidationError) -> str:
    """Say in one line what pydantic found, each with its place, and without the values."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [f"{_place(each['loc'])}{_message(each['msg'])}" for each in found[:MAX_PROBLEMS]]
    if len(found) > MAX_PROBLEMS:
        shown.append(f"and {len(found) - MAX_PROBLEMS:,} more")
    return "; ".join(shown)


def _place(location: tuple[int | str, ...]) -> str:
    return f"{_short('.'.join(map(str, location)), 60)}: " if location else ""


def _message(text: str) -> str:
    return _short(text.removeprefix("Value error, "), 120)


def _short(text: str, length: int) -> str:
    return one_line(shorten(text, length))
