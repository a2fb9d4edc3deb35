"""What a recording is packed in: gzip, and the chunks of HTTP/1.1, both within a bound.

The rules: RFC 1952 (gzip), and RFC 9112, section 7.1 (chunked transfer coding). What is cut short
is unpacked as far as it goes, and said to be.
"""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

GZIP = b"\x1f\x8b"
# A run of an agent has some megabytes. A packet of a few kilobytes can unpack to gigabytes.
MAX_UNPACKED_BYTES = 32 * 1024 * 1024
_GZIP_FORM = zlib.MAX_WBITS | 16
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?(\r?\n)")
# What the first chunk of a stream begins with: a field, a comment, JSON, or gzip.
_STREAM = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:(?:data|event|id|retry)?:|\{)|\x1f\x8b")


class Unpacked(NamedTuple):
    """What bytes held, and for a reader one sentence where something of it is missing."""

    data: bytes
    note: str | None = None


def unpack(source: bytes, bound: int = MAX_UNPACKED_BYTES) -> Unpacked:
    """Unpack gzip, also several members one after the other; other bytes are returned as they are.

    At most `bound` bytes come out. Never raises: what is damaged is unpacked up to the damage.
    """
    if not source.startswith(GZIP):
        return Unpacked(source)
    data = bytearray()
    rest = source
    while rest.startswith(GZIP):
        member = zlib.decompressobj(_GZIP_FORM)
        try:
            data += member.decompress(rest, bound + 1 - len(data))
        except zlib.error as error:
            return _ended(source, data, f"its gzip data is damaged: {error}")
        if len(data) > bound:
            del data[bound:]
            return Unpacked(bytes(data), f"it unpacks to more than {bound:,} bytes: cut there")
        if not member.eof:
            return _ended(source, data, "its gzip data is cut short")
        rest = member.unused_data
    note = f"{len(rest):,} bytes after its gzip data are not read" if rest.strip(b"\0") else None
    return Unpacked(bytes(data), note)


def _ended(source: bytes, data: bytearray, why: str) -> Unpacked:
    return Unpacked(bytes(data), why) if data else Unpacked(source, why)


def line_feeds(text: bytes) -> bytes:
    """Return a text with a line feed as the end of each line."""
    # Looking for what is not there is far quicker than replacing it.
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


def join_chunks(body: bytes) -> Unpacked | None:
    """Take the chunk sizes out of a body that was recorded with them; None where it has none.

    A body has them where its first line is a size, and that many bytes later a line ends.
    """
    if not _has_chunks(body):
        return None
    pieces: list[bytes] = []
    at = 0
    while found := _SIZE.match(body, at):
        size, at = int(found[1], 16), found.end()
        if size == 0:
            return Unpacked(b"".join([*pieces, _after_the_last(body[at:])]))
        pieces.append(body[at : at + size])
        at += size
        if at > len(body):
            return Unpacked(b"".join(pieces), "its last chunk is cut short")
        at += len(found[2]) if body.startswith(found[2], at) else 0
    rest = body[at:]
    seen = "saw something else" if rest else "it ends"
    note = f"expected the size of a chunk after {at:,} bytes of the body: {seen}"
    return Unpacked(b"".join([*pieces, rest]), note)


def _has_chunks(body: bytes) -> bool:
    found = _SIZE.match(body)
    if found is None or _STREAM.match(body, found.end()) is None:
        return False
    after = found.end() + int(found[1], 16)
    return after >= len(body) or body.startswith(found[2], after)


def _after_the_last(rest: bytes) -> bytes:
    # Trailer fields up to a blank line, then what follows: another answer, perhaps.
    blank = re.search(rb"(?:\A|\n)\r?\n", rest)
    return rest[blank.end() :] if blank is not None else b""
