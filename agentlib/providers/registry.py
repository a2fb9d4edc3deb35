"""The providers that are known, one row each: everything the other floors ask of a provider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from agentlib.conversation import Catalog, Entry
from agentlib.errors import UnknownProvider
from agentlib.providers.chat import ChatTranslator
from agentlib.providers.chat_request import encode_request as encode_chat
from agentlib.providers.fields import TranslatorOptions
from agentlib.providers.messages import MessagesTranslator
from agentlib.providers.messages_request import encode_request as encode_messages
from agentlib.providers.responses import ResponsesTranslator
from agentlib.providers.responses_request import encode_request
from agentlib.providers.translator import Note, Translator


class Encoder(Protocol):
    """Turns a history and a catalog into a native request body."""

    def __call__(
        self,
        model: str,
        history: Sequence[Entry],
        catalog: Catalog,
        *,
        max_output_tokens: int = ...,
        native: bool = ...,
    ) -> dict[str, Any]:
        """Return the request body, plain JSON values."""
        ...


class Provider(NamedTuple):
    """One API: its title, what it calls its terminal event, its translator and its encoder.

    `ends_at_done` is whether `[DONE]` ends its stream, whatever the connection does then.
    """

    name: str
    title: str
    terminal: str
    translator: Callable[[TranslatorOptions], Translator]
    encode: Encoder
    ends_at_done: bool = False


PROVIDERS = {
    row.name: row
    for row in (
        Provider(
            name="responses",
            title="OpenAI Responses",
            terminal="response.completed",
            translator=ResponsesTranslator,
            encode=encode_request,
        ),
        Provider(
            name="chat",
            title="OpenAI Chat Completions",
            terminal="a finish reason and a clean end",
            translator=ChatTranslator,
            encode=encode_chat,
            ends_at_done=True,
        ),
        Provider(
            name="messages",
            title="Anthropic Messages",
            terminal="message_stop",
            translator=MessagesTranslator,
            encode=encode_messages,
        ),
    )
}


def find_provider(name: str) -> Provider:
    """Return the row of this name. Raises UnknownProvider, which lists those known."""
    if name not in PROVIDERS:
        raise UnknownProvider(f"unknown provider {name!r}; known are: {', '.join(PROVIDERS)}")
    return PROVIDERS[name]


def make_translator(
    name: str, options: TranslatorOptions | None = None, note: Note = lambda _: None
) -> Translator:
    """Return a new translator for one response of this provider, with its tolerances around it.

    `note` is told what a tolerance did. Raises UnknownProvider, or UnknownFlag.
    """
    options = options or TranslatorOptions()
    translator = find_provider(name).translator(options)
    if not options.compat:
        return translator
    from agentlib.providers.compat import tolerant

    return tolerant(translator, name, options.compat, note)
