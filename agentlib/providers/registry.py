"""The providers that are known, one row each: everything the other floors ask of a provider."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from agentlib.conversation import Catalog, Entry
from agentlib.errors import UnknownProvider
from agentlib.providers.fields import TranslatorOptions
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

    `reads` and `writes` name the class of its translator and the function that encodes its
    requests, each as "module:name". `ends_at_done` is whether `[DONE]` ends its stream, whatever
    the connection does then.
    """

    name: str
    title: str
    terminal: str
    reads: str
    writes: str
    ends_at_done: bool = False

    def translator(self, options: TranslatorOptions) -> Translator:
        """Return a new translator for one response."""
        made: Translator = _load(self.reads)(options)
        return made

    @property
    def encode(self) -> Encoder:
        """The encoder of its requests."""
        encoder: Encoder = _load(self.writes)
        return encoder


# Named, not imported: who reads one API's stream loads that API's module, and no other.
PROVIDERS = {
    row.name: row
    for row in (
        Provider(
            name="responses",
            title="OpenAI Responses",
            terminal="response.completed",
            reads="agentlib.providers.responses:ResponsesTranslator",
            writes="agentlib.providers.responses_request:encode_request",
        ),
        Provider(
            name="chat",
            title="OpenAI Chat Completions",
            terminal="a finish reason and a clean end",
            reads="agentlib.providers.chat:ChatTranslator",
            writes="agentlib.providers.chat_request:encode_request",
            ends_at_done=True,
        ),
        Provider(
            name="messages",
            title="Anthropic Messages",
            terminal="message_stop",
            reads="agentlib.providers.messages:MessagesTranslator",
            writes="agentlib.providers.messages_request:encode_request",
        ),
        Provider(
            name="gemini",
            title="Google Gemini",
            terminal="finish reason STOP and a clean end",
            reads="agentlib.providers.gemini:GeminiTranslator",
            writes="agentlib.providers.gemini_request:encode_request",
        ),
    )
}
TOLERANT = "agentlib.providers.compat:tolerant"


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
    tolerated: Translator = _load(TOLERANT)(translator, name, options.compat, note)
    return tolerated


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
