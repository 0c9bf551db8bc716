"""A bare echo of the websockets library as it ships, to compare a node with: prints its port."""

import asyncio

import uvloop
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed


async def _echo(socket: ServerConnection) -> None:
    try:
        async for message in socket:
            await socket.send(message)
    except ConnectionClosed:
        return


async def _main() -> None:
    async with serve(_echo, "127.0.0.1", 0, compression=None, max_size=None) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    uvloop.run(_main())
