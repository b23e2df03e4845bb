"""Strangers who open connections to a party that they have no right to: all the ways at once.

They know nothing but the address. One of the six ways takes a certificate of the right authority, in
which no expected name stands. They are a process of their own, so that they share no time with the
party in question.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep

HELLO = bytes.fromhex("16030100c8010000c40303")  # how a ClientHello of TLS begins
SECONDS = 2.0  # that a stranger waits for anything
FIRST_SECONDS = 1.0  # of an attack, before it is measured
WAYS = ("closed", "garbage", "half", "no certificate", "another authority", "unexpected name")
NOBODY, FOREIGN = "nobody", "foreign"


@contextmanager
def attack(
    bundles: Path, folder: Path, address: str, rate: int = 100, idle: int = 500
) -> Iterator[Counter[str]]:
    """Strangers at work: so many connections a second that fail, in turn in each way, and idle ones.

    An idle connection that is closed is opened again. What they did is counted when they have
    ended.
    """
    _certificates(bundles, folder)
    words = [str(folder), str(bundles / "a" / "ca.pem"), address, str(rate), str(idle)]
    process = subprocess.Popen(
        [sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    done: Counter[str] = Counter()
    try:
        sleep(FIRST_SECONDS)
        yield done
    finally:
        told, _ = process.communicate()  # they end when nobody writes to them any more
        done.update(json.loads(told))


def _certificates(bundles: Path, folder: Path) -> None:
    from mtcd.federation.credentials.authority import Authority
    from mtcd.federation.credentials.certificates import issue, make_authority

    folder.mkdir(parents=True, exist_ok=True)
    made = {
        NOBODY: issue(Authority.load(bundles).issued, NOBODY, None, 1),
        FOREIGN: issue(make_authority("strangers"), "a", None, 1),
    }
    for name, one in made.items():
        (folder / f"{name}.pem").write_bytes(one.certificate_pem)
        (folder / f"{name}.key").write_bytes(one.key_pem)


class Strangers:
    """All who connect to one place."""

    def __init__(self, folder: Path, ca: str, place: tuple[str, int]) -> None:
        self.place, self.done = place, Counter[str]()
        contexts = {
            "no certificate": _context(ca),
            "another authority": _context(ca, folder / FOREIGN),
            "unexpected name": _context(ca, folder / NOBODY),
        }
        self._secured = contexts
        self._plain = {"closed": b"", "half": HELLO, "garbage": b"GET / HTTP/1.1\r\n\r\n" * 3}

    async def fail(self, rate: int) -> None:
        """Open so many connections a second, whatever becomes of them."""
        loop = asyncio.get_running_loop()
        due, tasks = loop.time(), set()
        for way in itertools.cycle(WAYS):
            task = asyncio.create_task(self._try(way))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            due += 1 / rate
            await asyncio.sleep(max(due - loop.time(), 0))

    async def _try(self, way: str) -> None:
        self.done[way] += 1
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(SECONDS):
                reader, writer = await asyncio.open_connection(
                    *self.place, ssl=self._secured.get(way)
                )
                try:
                    writer.write(self._plain.get(way, b""))
                    if way not in ("closed", "half"):
                        await reader.read(100)  # until the other end refuses
                finally:
                    writer.close()

    async def hold(self) -> None:
        """Keep one idle connection open."""
        while True:
            try:
                reader, writer = await asyncio.open_connection(*self.place)
            except OSError:
                self.done["not accepted"] += 1
                await asyncio.sleep(0.1)
                continue
            self.done["idle"] += 1
            with suppress(OSError):
                await reader.read(1)
            writer.close()
            await asyncio.sleep(0.1)


def _context(ca: str, certificate: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(ca)
    if certificate is not None:
        context.load_cert_chain(f"{certificate}.pem", f"{certificate}.key")
    return context


async def main(folder: str, ca: str, address: str, rate: str, idle: str) -> None:
    """Attack until the standard input ends."""
    host, _, port = address.rpartition(":")
    strangers = Strangers(Path(folder), ca, (host, int(port)))
    # errors of connections that are given up are no news
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    tasks = [asyncio.create_task(strangers.hold()) for _ in range(int(idle))]
    tasks.append(asyncio.create_task(strangers.fail(int(rate))))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for task in tasks:
        task.cancel()
    sys.stdout.write(json.dumps(strangers.done))


if __name__ == "__main__":
    socket.setdefaulttimeout(SECONDS)
    asyncio.run(main(*sys.argv[1:]))
