"""What stands between a party and the world, as a process: ``proxy HOST PORT``, ``forward PROXY
HOST=ADDRESS ...``.

An HTTP proxy that allows CONNECT and nothing else; and a forwarder beside a party, which listens on
an address for each peer and asks the proxy for a way to it.
"""

from __future__ import annotations

import asyncio
import sys

PORT, CHUNK = 7447, 1 << 16
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def join(one: Streams, other: Streams) -> None:
    """Pass bytes both ways, until one side ends."""

    async def go(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(CHUNK):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        for _, end in (one, other):
            end.transport.abort()

    await asyncio.gather(go(one[0], other[1]), go(other[0], one[1]))


async def serve_proxy(host: str, port: int) -> None:
    async def called(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = (await reader.readuntil(b"\r\n\r\n")).decode().split()
        if words[0] != "CONNECT":
            writer.write(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
            writer.close()
            return
        name, _, at = words[1].partition(":")
        try:
            there = await asyncio.open_connection(name, int(at))
        except OSError:
            writer.transport.abort()
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await join((reader, writer), there)

    await (await asyncio.start_server(called, host, port)).serve_forever()


async def forward(proxy: str, peers: dict[str, str]) -> None:
    async def serve(name: str, address: str) -> None:
        async def called(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                there = await asyncio.open_connection(proxy, 3128)
                there[1].write(
                    f"CONNECT {name}:{PORT} HTTP/1.1\r\nHost: {name}:{PORT}\r\n\r\n".encode()
                )
                answer = await there[0].readuntil(b"\r\n\r\n")
            except (OSError, asyncio.IncompleteReadError):
                writer.transport.abort()
                return
            assert answer.split()[1] == b"200"
            await join((reader, writer), there)

        await (await asyncio.start_server(called, address, PORT)).serve_forever()

    await asyncio.gather(*(serve(name, address) for name, address in peers.items()))


if __name__ == "__main__":
    if sys.argv[1] == "proxy":
        asyncio.run(serve_proxy(sys.argv[2], int(sys.argv[3])))
    else:
        asyncio.run(forward(sys.argv[2], dict(word.split("=") for word in sys.argv[3:])))
