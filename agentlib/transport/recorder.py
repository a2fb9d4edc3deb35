"""Record a live stream: its bytes, and nothing else.

No header, key or address gets here, since a recorder sees only the body; where a server echoes a
secret in the body, it is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

REDACTED = "[redacted]"


class Recorder:
    """Writes the bytes of streams into a capture file while they are consumed.

    Call it with each chunk. The file appears under its name when the `with` ends, also after a
    response that failed, which is the one to look at; an interrupted one leaves no file. Each of
    `secrets` is replaced wherever it stands, also across two chunks.
    """

    def __init__(self, path: str | Path, secrets: Iterable[str] = ()) -> None:
        self.path = Path(path)
        self._secrets = tuple(secret.encode() for secret in secrets if secret)
        self._held = b""
        self._part = self.path.with_name(f"{self.path.name}.part")
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Open the file; raises OSError where it cannot be written."""
        self._file = self._part.open("wb")
        return self

    def __call__(self, chunk: bytes) -> None:
        """Write the next bytes."""
        text = self._redacted(self._held + chunk)
        keep = self._beginning_of_a_secret(text)
        self._held = text[len(text) - keep :]
        self._write(text[: len(text) - keep])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the file its name, or remove it where the caller was interrupted."""
        self._write(self._held)
        if self._file is not None:
            self._file.close()
        if error is not None and not isinstance(error, Exception):
            self._part.unlink(missing_ok=True)
        else:
            Path(self._part).replace(self.path)

    def _write(self, text: bytes) -> None:
        if self._file is None:
            raise ValueError("a recorder records inside its `with`")
        self._file.write(text)

    def _redacted(self, text: bytes) -> bytes:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED.encode())
        return text

    def _beginning_of_a_secret(self, text: bytes) -> int:
        longest = max((len(secret) for secret in self._secrets), default=1) - 1
        sizes = range(min(longest, len(text)), 0, -1)
        return next((n for n in sizes if any(s.startswith(text[-n:]) for s in self._secrets)), 0)
