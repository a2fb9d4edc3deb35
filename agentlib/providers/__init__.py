"""One module for each API: from its native events to the vocabulary, and its request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.providers.compat import FLAGS as FLAGS
    from agentlib.providers.compat import flags_for as flags_for
    from agentlib.providers.registry import PROVIDERS as PROVIDERS
    from agentlib.providers.registry import find_provider as find_provider
    from agentlib.providers.registry import make_translator as make_translator
    from agentlib.providers.responses import ResponsesTranslator as ResponsesTranslator
    from agentlib.providers.responses_request import encode_request as encode_request
    from agentlib.providers.translator import Translator as Translator

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".compat": ("FLAGS", "flags_for"),
        ".registry": ("PROVIDERS", "find_provider", "make_translator"),
        ".responses": ("ResponsesTranslator",),
        ".responses_request": ("encode_request",),
        ".translator": ("Translator",),
    },
)
