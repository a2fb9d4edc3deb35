"""What the runtime asks of a model: one decision, and where it can, within a bound of tokens."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

from agentlib.assembly import Decision
from agentlib.conversation import Catalog, Entry

BOUND = "most_output_tokens"


class Model(Protocol):
    """All that the runtime knows of a provider.

    Where `complete` also takes the keyword `most_output_tokens`, an int or None, it is given what
    is left of the budget, and asks the provider for no more. One that wraps another passes it on.
    """

    async def complete(self, history: Sequence[Entry], tools: Catalog) -> Decision:
        """Return one whole decision. Raises OpenFailure or a ResponseFailure."""
        ...


async def complete(
    model: Model, history: Sequence[Entry], tools: Catalog, most_output_tokens: int | None
) -> Decision:
    """Return the decision of `model`, asked for so many output tokens at most where it can be."""
    bound: Any = {BOUND: most_output_tokens} if takes_bound(model) else {}
    return await model.complete(history, tools, **bound)


def takes_bound(model: Model) -> bool:
    """Say whether the model can be asked for a number of output tokens at most."""
    try:
        parameters = inspect.signature(model.complete).parameters
    except (TypeError, ValueError):
        return False
    return BOUND in parameters
