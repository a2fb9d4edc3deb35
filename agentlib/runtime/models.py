"""What the runtime asks of a model: one decision; and what models that wrap others hand on.

A loop, a route and a continuation all ask by `complete` and are asked by it, so that any of them
may stand around any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

from agentlib.assembly import Decision
from agentlib.conversation import Catalog, Entry
from agentlib.errors import EncodingError
from agentlib.model import Encoding

BOUND, ENCODING = "most_output_tokens", "encoding"


class Model(Protocol):
    """All that the runtime knows of a provider.

    Where `complete` also takes the keyword `most_output_tokens`, an int or None, it is given what
    is left of the budget, and asks the provider for no more. Where it takes `encoding`, an
    `agentlib.model.Encoding` or None, its request can be encoded in that way, which a continuation
    needs. One that wraps another passes both on, by `complete` of this module.
    """

    async def complete(self, history: Sequence[Entry], tools: Catalog) -> Decision:
        """Return one whole decision. Raises OpenFailure or a ResponseFailure."""
        ...


async def complete(
    model: Model,
    history: Sequence[Entry],
    tools: Catalog,
    most_output_tokens: int | None,
    encoding: Encoding | None = None,
) -> Decision:
    """Return the decision of `model`, asked for so many output tokens at most where it can be.

    Raises as the model does, and EncodingError where it cannot be asked in this `encoding`.
    """
    options: dict[str, Any] = {BOUND: most_output_tokens} if takes(model, BOUND) else {}
    if encoding is not None:
        if not takes(model, ENCODING):
            raise EncodingError(f"a {type(model).__name__} takes no other encoding of its request")
        options[ENCODING] = encoding
    return await model.complete(history, tools, **options)


def takes(model: Model, option: str) -> bool:
    """Say whether the model's `complete` takes this keyword."""
    try:
        parameters = inspect.signature(model.complete).parameters
    except (TypeError, ValueError):
        return False
    return option in parameters
