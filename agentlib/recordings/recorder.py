"""Record live streams: their bytes, and nothing else.

    with Recorder("capture.sse", [key]) as recorder:
        http_client = openai.DefaultAsyncHttpxClient(event_hooks=recorder.hooks())
        client = openai.AsyncOpenAI(api_key=key, http_client=http_client)

That is all that the OpenAI SDK needs; `openai.OpenAI` takes a DefaultHttpxClient with the same
hooks, and so does any client of httpx. No header, key or address gets here, since a recorder sees
only the bodies; where a server echoes a secret in one, it is replaced.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentlib.files import FileWriter
from agentlib.recordings.exchanges import STREAM_TYPES, read_object, tools_of
from agentlib.recordings.known import KnownSecrets
from agentlib.recordings.redaction import Redactor
from agentlib.recordings.writing import mark
from agentlib.scrubbing import Scrubber

CUT_HERE = b"\n: cut here by the recorder, which was interrupted\n"


class Recorder:
    """Writes the bytes of streams into a capture file while they are consumed.

    Call it with each chunk. The file appears under its name when the `with` ends, also after a
    response that failed, and after an interruption: the one that hangs is the one to look at. It
    then says in a comment that it was cut here, so that nobody takes that for the provider's end.
    One to which nothing came leaves no file. Each of `secrets` (or the one, if it is a text) is
    replaced wherever it stands: across two chunks at once, and at the end, for which the recording
    is read once more, where it is written with escapes, percent-encoded, or in fragments.
    """

    def __init__(self, path: str | Path, secrets: Iterable[str] = ()) -> None:
        self.path = Path(path)
        self._secrets = (secrets,) if isinstance(secrets, str) else tuple(filter(None, secrets))
        self._scrubber = Scrubber(self._secrets)
        self._file: FileWriter | None = None
        self._answers = 0

    def hooks(self) -> dict[str, list[Callable[[Any], Any]]]:
        """Return the `event_hooks` of an httpx client, async or not, that records its streams.

        Each answer begins with a comment that names its number and the tools that its request
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
        """Open the file; raises CannotWrite where it cannot be written, or is no plain file."""
        self._file = FileWriter(self.path).open()
        return self

    def __call__(self, chunk: bytes) -> None:
        """Write the next bytes. Raises CannotWrite where the disk takes no more."""
        if self._file is None:
            raise ValueError("a recorder records inside its `with`")
        self._file.write(self._scrubber.feed(chunk))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the file its name, or leave none where nothing came."""
        file, self._file = self._file, None
        if file is None:
            return
        file.write(self._scrubber.end())
        if file.size == 0:
            file.discard()
            return
        if error is not None and not isinstance(error, Exception):
            # On a line of its own: what came last may have ended inside a line, which a reader
            # then drops with its event, as it does for every cut.
            file.write(CUT_HERE)
        if self._secrets:
            known = KnownSecrets(self._secrets)
            file.rewrite(lambda body: known.body(body, "sse"))
        file.commit()


class _Nothing:
    """What the hook returns: an async client awaits it, another one passes over it."""

    def __await__(self) -> Iterator[None]:
        return iter(())
