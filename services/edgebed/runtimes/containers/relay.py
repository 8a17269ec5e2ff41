"""Joins the management network of several hosts to a controller that is a process of the first one.

    node --> overlay network --> relay, a container on the first host --> bridge network --> controller

An overlay network has no address on the host itself, so the controller cannot listen there. The relay copies bytes both
ways and understands none: they are encrypted. It ends by itself a minute after its controller has.

    python -m edgebed.runtimes.containers.relay 172.18.0.1:40123
"""

import asyncio
import socket
import sys

PORT = 7000
"""Port at which the relay listens."""
CHUNK_BYTES = 65536
LOOK_EVERY_S = 10.0
LOOKS_MISSED = 6


class Relay:
    """Accepts connections, and makes one to the target for each."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.open = 0
        """Connections that are open."""
        self.listening: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The port, as soon as it accepts."""

    async def serve(self) -> None:
        """Relay until the target has not been there for a minute."""
        async with await asyncio.start_server(self._accept, port=PORT, family=socket.AF_INET) as server:
            self.listening.set_result(server.sockets[0].getsockname()[1])
            missed = 0
            while missed < LOOKS_MISSED:
                await asyncio.sleep(LOOK_EVERY_S)
                missed = 0 if self.open or await self._is_there() else missed + 1

    async def _is_there(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(self.host, self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            onwards_reader, onwards = await asyncio.open_connection(self.host, self.port)
        except OSError:
            writer.close()
            return
        self.open += 1
        try:
            await asyncio.gather(_copy(reader, onwards), _copy(onwards_reader, writer))
        finally:
            self.open -= 1
            for side in (onwards, writer):
                side.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end, which is passed on; a connection that breaks ends both ways."""
    try:
        while part := await reader.read(CHUNK_BYTES):
            writer.write(part)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def _main(target: str) -> None:
    host, _, port = target.rpartition(":")
    await Relay(host, int(port)).serve()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
