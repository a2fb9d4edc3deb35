"""The items of a Responses output: which can be sent back, and which ask the host to act.

Source of the rules: OpenAI's API reference, "Responses", the kinds of output item. In the
portable form only text, refusals and function calls go back. In native replay the whole output
goes back verbatim, with what only the provider understands; an item that asks the host for an
act that is no function of the catalog is refused in both.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from agentlib.jsonvalues import quote
from agentlib.providers.fields import Native, role_problem, violation


@dataclass(slots=True)
class Item:
    """An item of the output as it was added, with the keys of its texts that were streamed.

    `said` keeps what was stated of it first, where each state may be silent.
    """

    item_id: str
    kind: str
    index: int | None
    call_id: str = ""
    name: str = ""
    caller: object = None
    done: bool = False
    stopped: bool = False
    texts: set[str] = field(default_factory=set)
    said: dict[str, object] = field(default_factory=dict)


PORTABLE = frozenset({"message", "function_call"})

# Kept as they came: the provider made them, and acted on them itself where there was to act.
HOSTED = frozenset(
    {
        "reasoning",
        "compaction",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_list_tools",
        "mcp_call",
        "program",
        "program_output",
        "shell_call_output",
        "tool_search_output",
    }
)

# They ask the host to act, unless their output stands in the same response: then the provider did.
ANSWERED_BY = {"shell_call": "shell_call_output", "tool_search_call": "tool_search_output"}

ASKS_THE_HOST = {
    "computer_call": "it asks the host to use a computer",
    "local_shell_call": "it asks the host to run a shell command",
    "custom_tool_call": "it asks the host to run a custom tool",
    "apply_patch_call": "it asks the host to apply a patch",
    "mcp_approval_request": "it asks the host to approve a call",
    "shell_call": "it asks the host to run shell commands",
    "tool_search_call": "it asks the host to search its tools",
}

# The tools of xAI's `x_search`, by xAI's page of that name. They run at the provider.
OF_X_SEARCH = frozenset(
    {
        "x_user_search",
        "x_keyword_search",
        "x_semantic_search",
        "x_thread_fetch",
        "view_image",
        "view_x_video",
    }
)

NOT_PORTABLE = "it cannot be sent back in the portable form"
UNKNOWN = "what it asks of the host is not known"


# A call that a hosted program made waits, in progress, for the result that its program awaits.
OF_A_PROGRAM = "a hosted program made it, which only the native form can say"


def is_of_a_program(item: Native) -> bool:
    """Say whether a function call was made by a program that the provider runs."""
    caller = item.get("caller")
    return isinstance(caller, Mapping) and caller.get("type") == "program"


def is_whole(call: Native, *, native: bool) -> bool:
    """Say whether the status of a function call in a completed response is that of a whole one."""
    status = call.get("status")
    waits = native and is_of_a_program(call) and status == "in_progress"
    return status == "completed" or waits


# What an item may say of itself, None where it is silent; some servers add it whole.
_STATUS = {False: (None, "in_progress", "completed"), True: (None, "completed")}
# What the provider ran itself may have failed there: its answer is then what the model saw.
_OF_THE_MODEL = frozenset({"message", "function_call", "reasoning"})


# What each state of an item may say, and none may change.
_LASTING = ("namespace", "phase")


def agree(item: Item, native: Native) -> None:
    """Compare one more state of an item, or of its arguments, with those that came before."""
    fields = [("call_id", item.call_id), ("name", item.name), ("caller", item.caller)]
    _compare(item, native, fields if item.kind == "function_call" else [])


def agree_at_the_end(item: Item, native: Native) -> None:
    """Compare the state of an item in the terminal event; the gate compares its call."""
    _compare(item, native, [])


def _compare(item: Item, native: Native, fields: list[tuple[str, object]]) -> None:
    said = [name for name in _LASTING if native.get(name) is not None]
    lasting = [(name, item.said.setdefault(name, native[name])) for name in said]
    for name, known in [*fields, *lasting]:
        seen = native.get(name)
        if seen is not None and seen != known:
            raise violation(
                f"item {quote(item.item_id)}: expected {name} {quote(known)}, saw {quote(seen)}"
            )


def status_problem(item: Native, *, done: bool) -> str:
    """Return how the state of an item disagrees with where it stands; empty where it agrees.

    `done` is whether the item stands in its done or in the terminal event, and not in its added.
    """
    status = item.get("status")
    if item.get("type") in _OF_THE_MODEL:
        for name in ("error", "incomplete_details"):
            if item.get(name) is not None:
                return f"it carries {name}: {quote(item[name])}"
        if role_problem(item):
            return role_problem(item)
    if item.get("type") not in _OF_THE_MODEL:
        wrong = status is not None and not isinstance(status, str)
    elif done and is_of_a_program(item) and status == "in_progress":
        wrong = False
    else:
        wrong = status not in _STATUS[done]
    return f"its status is {quote(status)}" if wrong else ""


def refuse_status(item: Native, *, done: bool) -> None:
    """Refuse an item whose state disagrees with where it stands; see `status_problem`."""
    problem = status_problem(item, done=done)
    if problem:
        check = "calls_equal" if item.get("type") == "function_call" else "lifecycle"
        raise violation(f"item {quote(item.get('id'))}: {problem}", check=check)


def take_done(item: Item, native: Native) -> None:
    """Refuse the state of an item that is done, but for one that stopped: see `refuse_stopped`.

    Before a response that stops, an item says so first. Only the response's end tells which it is.
    """
    stops = item.kind in _OF_THE_MODEL and native.get("status") == "incomplete"
    refuse_status({**native, "status": "completed"} if stops else native, done=True)
    item.stopped = stops


def refuse_stopped(items: Iterable[Item]) -> None:
    """Refuse the items of a response that completed whose own done said that they stopped."""
    for item in items:
        if item.stopped:
            check = "calls_equal" if item.kind == "function_call" else "lifecycle"
            raise violation(f"item {quote(item.item_id)}: its status was incomplete", check=check)


def refuse_disorder(item: Item, place: int, last: int) -> int:
    """Refuse an item of the final output out of its order; return its index."""
    # Without an index the order in which the items were added is the only one.
    index = item.index if item.index is not None else place
    if index < last:
        seen = f"item {quote(item.item_id)} of output_index {index} after {last}"
        raise violation(f"expected the final output in the streamed order, saw {seen}")
    return index


def says_more(item: Native) -> bool:
    """Say whether the portable form of `item` would lose something that the provider wants back."""
    return item.get("type") not in PORTABLE or is_of_a_program(item) or bool(item.get("phase"))


def answers(output: Iterable[Native]) -> frozenset[tuple[str, str]]:
    """Return the kind and call ID of each item of `output` that answers another one."""
    answering = [item for item in output if item.get("type") in ANSWERED_BY.values()]
    return frozenset(
        (item["type"], item["call_id"])
        for item in answering
        if isinstance(item.get("call_id"), str)
    )


def refusal(item: Native, answered: Container[tuple[str, str]], *, native: bool) -> str:
    """Return why `item` cannot be sent back; empty where it can. `answered`: see `answers`."""
    kind = item["type"]
    if _is_of_x_search(item) or (kind in ANSWERED_BY and _is_answered(item, answered)):
        return "" if native else NOT_PORTABLE
    if kind in ASKS_THE_HOST:
        return ASKS_THE_HOST[kind]
    if kind not in HOSTED:
        return UNKNOWN
    return "" if native else NOT_PORTABLE


def _is_of_x_search(item: Native) -> bool:
    # xAI reports the steps of its own search in these words: it made them, and read the results.
    call_id = item.get("call_id")
    known = item["type"] == "custom_tool_call" and item.get("name") in OF_X_SEARCH
    return known and isinstance(call_id, str) and call_id.startswith("xs_call_")


def _is_answered(item: Native, answered: Container[tuple[str, str]]) -> bool:
    if item["type"] == "tool_search_call" and item.get("execution") == "server":
        return True
    call_id = item.get("call_id")
    return isinstance(call_id, str) and (ANSWERED_BY[item["type"]], call_id) in answered
