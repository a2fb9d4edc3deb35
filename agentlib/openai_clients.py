"""The one place that imports the OpenAI SDK, and makes its clients, which do what is asked only.

They follow no redirect and retry nothing; keys and proxies they take from the environment.

An error here may quote an address with its password, so that none is chained.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from agentlib.errors import NotConfigured
from agentlib.openai_bodies import bound_refusal, bound_sync_refusal
from agentlib.openai_phases import describe

if TYPE_CHECKING:
    from ssl import SSLContext

    from openai import APIStatusError, AsyncOpenAI, AsyncStream, OpenAI

    # For the annotations of modules that do not import the SDK.
    SDKClient: TypeAlias = OpenAI
    AsyncSDKClient: TypeAlias = AsyncOpenAI
    SDKAnswer: TypeAlias = AsyncStream[Any]
    SDKRefusal: TypeAlias = APIStatusError

NO_SDK = "the SDK is not installed; install it with: pip install openai"
NO_KEY = "no key: set OPENAI_API_KEY"
NO_SOCKS = (
    "the environment names a SOCKS proxy (ALL_PROXY and the like), which needs an extra; install "
    'it with: pip install "httpx2[socks]"'
)
# A proxy of the environment cannot reach a server on this machine, such as a lesson's.
NO_PROXY = {"all://127.0.0.1": None, "all://localhost": None, "all://[::1]": None}
# Where the environment names certificates of its own.
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def make_client(api_key: str | None = None, base_url: str | None = None) -> AsyncOpenAI:
    """Return a client of the SDK, made from the environment where nothing is handed over.

    Raises OpenFailure where there is no SDK, no key, or no client can be made.
    """
    openai = sdk()
    kinds = openai.AsyncOpenAI, openai.DefaultAsyncHttpxClient
    return _made(*kinds, bound_refusal, api_key, base_url)  # type: ignore[no-any-return]


def make_sync_client(api_key: str | None = None, base_url: str | None = None) -> OpenAI:
    """Return a client that blocks. Raises OpenFailure as `make_client` does."""
    openai = sdk()
    kinds = openai.OpenAI, openai.DefaultHttpxClient
    return _made(*kinds, bound_sync_refusal, api_key, base_url)  # type: ignore[no-any-return]


def sdk() -> Any:
    """Return the SDK's module. Raises NotConfigured where it is not installed."""
    try:
        import openai
    except ImportError as error:
        raise NotConfigured(NO_SDK) from error
    return openai


def _options(hook: Callable[..., Any]) -> dict[str, Any]:
    # A redirect would send the conversation, and further requests, to an address nobody gave.
    return {
        "follow_redirects": False,
        "event_hooks": {"response": [hook]},
        "mounts": NO_PROXY,
        "verify": _trusted(*map(os.environ.get, CERTIFICATE_VARIABLES)),
    }


@cache
def _trusted(*_places: str | None) -> SSLContext:
    # To read the machine's certificates takes fifty milliseconds, far longer than all the rest of
    # making a client: once is enough for each place that the environment names.
    import httpx2

    return httpx2.create_ssl_context()


def _made(
    kind: Any,
    http_kind: Any,
    hook: Callable[..., Any],
    api_key: str | None,
    base_url: str | None,
) -> Any:
    openai = sdk()
    try:
        http_client = http_kind(**_options(hook))
        return kind(api_key=api_key, base_url=base_url, max_retries=0, http_client=http_client)
    except openai.OpenAIError:
        reason = NO_KEY
    except ImportError:
        reason = NO_SOCKS
    except Exception as error:  # noqa: BLE001 - a proxy or an address that no client takes
        reason = f"no client could be made: {describe(error)}"
    # Raised here, it leaves the first one behind, which may quote an address with its password.
    raise NotConfigured(reason)
