"""Links that can be cut: everything between two parties goes through a port of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from threading import Thread
from typing import Any

from waiting import PATIENCE

OPEN, SILENT, CLOSED = "open", "silent", "closed"
CHUNK = 1 << 16


class Proxies:
    """All links of a federation, in one thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._made: list[Proxy] = []

    def add(self, port: int) -> Proxy:
        """A way to this port of this machine."""
        proxy = Proxy(port)
        self._do(proxy.listen())
        self._made.append(proxy)
        return proxy

    def set(self, proxy: Proxy, state: str) -> None:
        """Cut a link, so that bytes get lost or so that connections break; or let all pass
        again."""
        self._do(proxy.set(state))

    def close(self) -> None:
        """End all."""
        for proxy in self._made:
            self._do(proxy.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, act: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(act, self._loop).result(PATIENCE)


class Proxy:
    """One link, from whoever calls ``port`` of this proxy to the one who listens at the port it was
    made for."""

    def __init__(self, to: int) -> None:
        self.to, self.port, self.state = to, 0, OPEN
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._called, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def set(self, state: str) -> None:
        self.state = state
        (self._flowing.clear if state == SILENT else self._flowing.set)()
        if state == CLOSED:
            self._break_off()

    async def close(self) -> None:
        self._server.close()
        self._flowing.set()
        self._break_off()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _break_off(self) -> None:
        for end in self._ends:
            end.transport.abort()

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._ends.add(writer)
        ends = [writer]
        try:
            await self._flowing.wait()
            if self.state == CLOSED:
                return
            back, on = await asyncio.open_connection("127.0.0.1", self.to)
            self._ends.add(on)
            ends.append(on)
            await asyncio.gather(self._pass(reader, on, ends), self._pass(back, writer, ends))
        except OSError:
            pass  # nobody listens there now: the caller sees a broken connection
        finally:
            for end in ends:
                end.transport.abort()
                self._ends.discard(end)
            self._tasks.discard(task)

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        ends: list[asyncio.StreamWriter],
    ) -> None:
        """Bytes, until one side ends; while the link is silent, the other does not hear of that
        either."""
        try:
            while data := await reader.read(CHUNK):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        await self._flowing.wait()
        for end in ends:
            end.transport.abort()
