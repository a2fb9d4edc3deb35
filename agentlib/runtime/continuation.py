"""Continue by response ID: send what is new, and the whole history only where that fails.

Four things look alike and are not. A response ID is a cursor into what the server stored. A
prompt cache makes a repeated beginning cheaper, with or without a cursor. Token accounting is
what was billed: with a cursor the earlier turns are still input, and still counted. A call ID
joins one call to its result, in either form of request.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from agentlib.assembly import Decision
from agentlib.conversation import Catalog, Entry, ToolResult
from agentlib.errors import EncodingError, OpenFailure
from agentlib.model import Encoding
from agentlib.providers.responses_request import encode_continuation
from agentlib.providers.synthetic import is_local
from agentlib.runtime.models import ENCODING, Model, complete, takes

RESPONSES = "responses"
NOT_FOUND = "previous_response_not_found"


class Cursor(NamedTuple):
    """A stored response: its ID, and the history that the server keeps under it."""

    response_id: str
    known: tuple[Entry, ...]


class ContinuingModel:
    """Asks through a model of the Responses API, or routes to such, and continues where it can.

    It stores every response at the provider (`store=True`): that is what a continuation is. Only
    a released decision becomes the `cursor`, so a response of which nothing was released, or a
    call in it that was never seen, is never continued from. `fallbacks` counts how often the
    server no longer knew the cursor and the whole history went out instead, before any tool ran.
    An ID that one route stored may be unknown to another, which is the same case. Raises
    EncodingError where the model's provider has no such thing, or its request cannot be encoded
    in another way.
    """

    def __init__(self, model: Model) -> None:
        provider = getattr(model, "provider", None)
        if provider is not None and provider.name != RESPONSES:
            raise EncodingError(f"{provider.title} has no continuation by response ID")
        if not takes(model, ENCODING):
            raise EncodingError(f"a {type(model).__name__} takes no other encoding of its request")
        self.cursor: Cursor | None = None
        self.fallbacks = 0
        self._model = model

    async def complete(
        self,
        history: Sequence[Entry],
        tools: Catalog,
        *,
        most_output_tokens: int | None = None,
    ) -> Decision:
        """Return the decision of one response to `history`, with `tools` exposed.

        It is bounded, and raises, as `StreamingModel.complete` does.
        """
        most = most_output_tokens
        cursor = self.cursor
        if cursor is not None and _continues(history, cursor):
            try:
                return await self._ask(history, tools, cursor, most)
            except OpenFailure as failure:
                if not is_forgotten(failure):
                    raise
                self.cursor = None
                self.fallbacks += 1
        return await self._ask(history, tools, None, most)

    async def _ask(
        self, history: Sequence[Entry], tools: Catalog, cursor: Cursor | None, most: int | None
    ) -> Decision:
        encode = partial(
            encode_continuation,
            known=len(cursor.known) if cursor is not None else 0,
            response_id=cursor.response_id if cursor is not None else "",
        )
        decision = await complete(self._model, history, tools, most, Encoding(RESPONSES, encode))
        known = (*history, decision.message())
        self.cursor = (
            None if is_local(decision.response_id) else Cursor(decision.response_id, known)
        )
        return decision


def is_forgotten(failure: OpenFailure) -> bool:
    """Say whether an opening failed because the server does not know the response's ID."""
    if failure.code == NOT_FOUND:
        return failure.status in (400, 404)
    return failure.status == 404 and failure.code is None


def _continues(history: Sequence[Entry], cursor: Cursor) -> bool:
    known = len(cursor.known)
    new = history[known:]
    adds = all(isinstance(entry, ToolResult) or entry.role == "user" for entry in new)
    return bool(new) and adds and tuple(history[:known]) == cursor.known
