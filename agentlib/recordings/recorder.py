"""Record live streams: their bytes, and nothing else.

    with Recorder("capture.sse", [key]) as recorder:
        http_client = openai.DefaultAsyncHttpxClient(event_hooks=recorder.hooks())
        client = openai.AsyncOpenAI(api_key=key, http_client=http_client)

That is all that the OpenAI SDK needs; `openai.OpenAI` takes a DefaultHttpxClient with the same
hooks, and so does any client of httpx. No header, key or address gets here, since a recorder sees
only the bodies; where a server echoes a secret in one, it is replaced.
"""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from agentlib.recordings.exchanges import STREAM_TYPES, read_object, tools_of
from agentlib.recordings.formats import mark

REDACTED = "[redacted]"


class Recorder:
    """Writes the bytes of streams into a capture file while they are consumed.

    Call it with each chunk. The file appears under its name when the `with` ends, also after a
    response that failed, which is the one to look at; an interrupted one leaves no file, and
    neither does one to which nothing came. Each of `secrets` is replaced wherever it stands, also
    across two chunks.
    """

    def __init__(self, path: str | Path, secrets: Iterable[str] = ()) -> None:
        self.path = Path(path)
        self._redactor = _Redactor(secrets)
        self._part = self.path.with_name(f"{self.path.name}.part")
        self._file: BinaryIO | None = None
        self._answers = 0

    def hooks(self) -> dict[str, list[Callable[[Any], Any]]]:
        """Return the `event_hooks` of an httpx client, async or not, that records its streams.

        Each answer begins with a comment that says its number and the tools that its request
        exposed. The client is used inside the `with`.
        """
        return {"response": [self._attach]}

    def _attach(self, response: Any) -> _Nothing:
        # By the methods that the SDK and httpx read every body through, unpacked.
        read, aread = response.iter_bytes, response.aiter_bytes

        async def aiter_bytes(*sizes: int | None) -> AsyncIterator[bytes]:
            async with aclosing(aread(*sizes)) as chunks:
                async for chunk in chunks:
                    self(chunk)
                    yield chunk

        def iter_bytes(*sizes: int | None) -> Iterator[bytes]:
            for chunk in read(*sizes):
                self(chunk)
                yield chunk

        if self._begin(response):
            response.iter_bytes, response.aiter_bytes = iter_bytes, aiter_bytes
        return _Nothing()

    def _begin(self, response: Any) -> bool:
        from agentlib.recordings.redaction import Redactor

        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in STREAM_TYPES:
            return False
        tools = None
        with suppress(RuntimeError):  # the body of a request may be a stream too
            tools = tools_of(read_object(response.request.content))
        self._answers += 1
        # What was cut before it may have ended inside a line.
        between = b"\n" if self._answers > 1 else b""
        self(between + mark(f"answer {self._answers}", Redactor().value(tools)))
        return True

    def __enter__(self) -> Self:
        """Open the file; raises OSError where it cannot be written, or is a pipe or a device."""
        if self.path.exists() and not self.path.is_file():
            raise OSError(errno.EINVAL, "expected the name of a file", str(self.path))
        self._file = self._part.open("wb")
        return self

    def __call__(self, chunk: bytes) -> None:
        """Write the next bytes."""
        if self._file is None:
            raise ValueError("a recorder records inside its `with`")
        self._file.write(self._redactor.feed(chunk))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the file its name, or remove it where the caller was interrupted."""
        file, self._file = self._file, None
        if file is None:
            return
        keep = False
        try:
            with file:
                file.write(self._redactor.end())
                keep = file.tell() > 0 and (error is None or isinstance(error, Exception))
        finally:
            if keep:
                self._part.replace(self.path)
            else:
                self._part.unlink(missing_ok=True)


class _Nothing:
    """What the hook returns: an async client awaits it, another one passes over it."""

    def __await__(self) -> Iterator[None]:
        return iter(())


class _Redactor:
    """Replaces secrets in bytes that come in chunks; any split gives the same bytes.

    At each place it replaces the longest secret that begins there, from left to right. What may
    be the beginning of one is held back until the next bytes decide.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted((s.encode() for s in secrets if s), key=len, reverse=True)
        self._any = re.compile(b"|".join(re.escape(secret) for secret in self._secrets) or b"(?!)")
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes; return those that are decided."""
        text = self._held + chunk
        out: list[bytes] = []
        at = 0
        while True:
            found = self._any.search(text, at)
            stop = found.start() if found is not None else len(text)
            begins = self._unfinished(text, at, stop)
            if begins is not None or found is None:
                cut = stop if begins is None else begins
                self._held = text[cut:]
                return b"".join([*out, text[at:cut]])
            out += [text[at:stop], REDACTED.encode()]
            at = found.end()

    def end(self) -> bytes:
        """Say that nothing more comes; return the rest."""
        rest, self._held = self._held, b""
        return self._any.sub(REDACTED.encode(), rest)

    def _unfinished(self, text: bytes, at: int, stop: int) -> int | None:
        # Where, from `at` to `stop`, a secret may begin that reaches beyond the text.
        longest = len(self._secrets[0]) if self._secrets else 0
        for start in range(max(at, len(text) - longest + 1), min(stop + 1, len(text))):
            rest = text[start:]
            if any(len(secret) > len(rest) and secret.startswith(rest) for secret in self._secrets):
                return start
        return None
