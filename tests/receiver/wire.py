"""The outgoing side of one connection: writes that wait, are counted, cut or reset. Nothing is read here."""

import asyncio
import socket
import struct

RST_ON_CLOSE = struct.pack("ii", 1, 0)
SMALL_SEND_BUFFER = 8 * 1024


class Wire:
    """A transport with back-pressure."""

    def __init__(self, transport: asyncio.Transport) -> None:
        """Take over the outgoing side of a transport."""
        self._transport = transport
        self._drained: asyncio.Future[None] | None = None

    @property
    def closing(self) -> bool:
        """Say whether nothing more will be sent."""
        return self._transport.is_closing()

    @property
    def unsent(self) -> int:
        """Count the bytes that the socket has not taken yet."""
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Send, or queue behind what is unsent."""
        self._transport.write(data)

    def keep_little_unsent(self) -> None:
        """Make buffers small, so that what was written is close to what the client was given."""
        self._transport.set_write_buffer_limits(high=1, low=0)
        self._transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_SEND_BUFFER
        )

    async def drain(self) -> None:
        """Wait until the socket has taken what was written.

        Once it is closed this waits for ever: the lost connection cancels who waits.
        """
        if self.closing:
            await asyncio.get_running_loop().create_future()
        if self._drained is not None:
            await self._drained

    def pause(self) -> None:
        """Hear from the transport that too much is unsent."""
        self._drained = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        """Hear from the transport that it may go on."""
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def close(self) -> None:
        """Close after what was written."""
        self._transport.close()

    def abort(self) -> None:
        """Close now, dropping what is unsent."""
        self._transport.abort()

    def reset(self) -> None:
        """Close now with a TCP reset."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        self._transport.abort()
