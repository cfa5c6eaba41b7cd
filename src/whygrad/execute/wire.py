"""How jobs and results travel between processes: MessagePack, each message after its length."""

from __future__ import annotations

import struct

LENGTH = struct.Struct("<Q")


def framed(body: bytes) -> bytes:
    return LENGTH.pack(len(body)) + body


class Frames:
    """Puts messages together from what arrives, in whatever pieces.

    >>> frames = Frames()
    >>> data = framed(b"one") + framed(b"two")
    >>> [list(frames.feed(part)) for part in (data[:9], data[9:])]
    [[], [b'one', b'two']]
    """

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        self._held += data
        whole = []
        while len(self._held) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._held)
            end = LENGTH.size + length
            if len(self._held) < end:
                break
            whole.append(bytes(self._held[LENGTH.size : end]))
            del self._held[:end]
        return whole
