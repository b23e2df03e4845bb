"""Containers without Docker: a root file system of their own in a mount namespace, with this
machine as the base image.

/usr and /etc of this machine and its Python, at /usr/local as in the official images, are below;
what an instruction writes goes into a layer on top (overlayfs). Nothing else of this machine can be
seen, and nothing of it is changed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from containers import ROOT, Instruction, stages

MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # links into /usr
EMPTY = ("usr", "etc", "dev", "proc", "sys", "tmp", "root", "opt", "run", "var/tmp")
PATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "HOME": "/tmp", "LD_LIBRARY_PATH": "/usr/local/lib", "LANG": "C.UTF-8"}


def skip_where_not_allowed(folder: Path) -> None:
    base = Path(sys.base_prefix)
    if os.geteuid() != 0 or any(
        shutil.which(one) is None for one in ("unshare", "setpriv", "chroot")
    ):
        pytest.skip("needs root and util-linux")
    if not (base / "bin/python").exists() or base == Path("/usr"):
        pytest.skip("needs a Python that is not the system's, to stand for that of the base image")
    if not Path("/bin").is_symlink():
        pytest.skip("needs a merged /usr")
    root = Root(folder / "try")
    done = subprocess.run(root.command(["true"]), capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no overlays in mount namespaces here: {done.stderr.strip()}")


class Root:
    """A root file system: what is on top of this machine's lies in ``layer``."""

    def __init__(self, layer: Path) -> None:
        self.layer = layer
        for name in (
            "base",
            "root",
            "usr",
            "etc",
            "work/root",
            "work/usr",
            "work/etc",
            "mounted",
            "points",
        ):
            (layer / name).mkdir(parents=True)
        for name in EMPTY:
            (layer / "base" / name).mkdir(parents=True)
        for name in MERGED:
            if Path(f"/{name}").is_symlink():
                (layer / "base" / name).symlink_to(os.readlink(f"/{name}"))

    def path(self, inside: str) -> Path:
        """Where something lies that was written, outside of /usr and /etc."""
        return self.layer / "root" / inside.lstrip("/")

    def command(
        self,
        words: Iterable[str],
        environment: Mapping[str, str] = ENVIRONMENT,
        mounts: Mapping[str, Path] | None = None,
        user: str = "0:0",
        folder: str = "/",
        writable: bool = True,
        read_only: Iterable[str] = (),
    ) -> list[str]:
        """Runs something inside. ``mounts``: what lies where; ``read_only``: those that cannot be
        written to."""
        given = {"/usr/local": Path(sys.base_prefix), **(mounts or {})}
        lines = ["set -eu", f"cd {self.layer}"]
        for name, below in (("root", f"{self.layer}/base"), ("usr", "/usr"), ("etc", "/etc")):
            place = "mounted" if name == "root" else f"mounted/{name}"
            lines.append(
                f"mount -t overlay overlay -o {self._layers(name, below, writable)} {place}"
            )
        lines += [
            "mount --rbind /dev mounted/dev",
            "mount --rbind /proc mounted/proc",
            "mount -t tmpfs tmpfs mounted/tmp",
        ]
        for target, source in given.items():
            self._make_point(target, source)
            place = f"mounted{target}"
            lines.append(f"mount --bind {shlex.quote(str(source))} {place}")
            if target in ("/usr/local", *read_only):
                lines.append(f"mount -o remount,bind,ro {place}")
        uid, gid = user.split(":")
        inside = [
            "env",
            "-i",
            f"--chdir={folder}",
            *(f"{name}={value}" for name, value in environment.items()),
        ]
        limits = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--no-new-privs"]
        if user != "0:0":
            limits += ["--bounding-set=-all", "--inh-caps=-all"]
        lines.append(f"exec chroot mounted {shlex.join([*limits, *inside, *words])}")
        return ["unshare", "--mount", "sh", "-c", "\n".join(lines)]

    def _layers(self, name: str, below: str, writable: bool) -> str:
        top = f"{self.layer}/{name}"
        points = f"{self.layer}/points:" if name == "root" else ""
        if writable:
            return f"lowerdir={points}{below},upperdir={top},workdir={self.layer}/work/{name}"
        return f"lowerdir={points}{top}:{below}"

    def _make_point(self, target: str, source: Path) -> None:
        """Where something can be mounted, also in a root that cannot be written to."""
        point = self.layer / "points" / target.lstrip("/")
        if target == "/usr/local":
            return
        if source.is_dir():
            point.mkdir(parents=True, exist_ok=True)
        else:
            point.parent.mkdir(parents=True, exist_ok=True)
            point.touch()


class Image:
    """What the Dockerfile makes: its stages are built one after the other, by its own lines."""

    def __init__(self, folder: Path) -> None:
        self.roots: dict[str, Root] = {}
        self._pip, self._pip_places = _pip_settings()
        for name, lines in stages().items():
            self.root = self.roots[name] = Root(folder / (name or "last"))
            self.environment, self.user, self.folder = dict(ENVIRONMENT), "0:0", "/"
            self.arguments: dict[str, str] = {}
            for line in lines:
                self._follow(line)

    def _follow(self, line: Instruction) -> None:
        if line.word == "RUN":
            self._run(line.text)
        elif line.word == "COPY":
            self._copy(line.text.split())
        elif line.word == "WORKDIR":
            self.folder = line.text
            self.root.path(line.text).mkdir(parents=True)
        elif line.word == "ARG":
            name, _, value = line.text.partition("=")
            self.arguments[name] = value
        elif line.word == "ENV":
            for word in shlex.split(line.text):
                name, _, value = word.partition("=")
                self.environment[name] = re.sub(
                    r"\$(\w+)", lambda match: self.environment[match[1]], value
                )
        elif line.word == "USER":
            self.user = line.text
        else:
            assert line.word in ("FROM", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"), (
                line
            )

    def _run(self, text: str) -> None:
        environment = {**self.environment, **self.arguments, **self._pip}
        given = {str(place): place for place in self._pip_places}
        command = self.root.command(
            ["sh", "-c", text], environment, given, self.user, self.folder, read_only=given
        )
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"RUN {text}\n{done.stdout}{done.stderr}"

    def _copy(self, arguments: list[str]) -> None:
        *sources, target = arguments
        origin = ROOT
        if sources[0].startswith("--from="):
            origin = self.roots[sources.pop(0).removeprefix("--from=")].layer / "root"
        place = self.root.path(f"{self.folder}/{target}" if not target.startswith("/") else target)
        for source in sources:
            path = origin / source.lstrip("/")
            if path.is_dir():
                ignored = (
                    shutil.ignore_patterns("__pycache__", "*.egg-info") if origin == ROOT else None
                )
                shutil.copytree(path, place, symlinks=True, ignore=ignored)
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place)


def _pip_settings() -> tuple[dict[str, str], list[Path]]:
    """Where pip of this machine finds packages, as environment, and the folders: an index names
    files beside it."""
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    settings = dict(re.findall(r"^[\w:]+\.([\w-]+)='(.*)'$", told.stdout, re.MULTILINE))
    settings |= {
        name[4:].lower().replace("_", "-"): value
        for name, value in os.environ.items()
        if name[:4] == "PIP_"
    }
    named = {
        Path(path) for value in settings.values() for path in re.findall(r"(?<!\S)(/\S+)", value)
    }
    named |= {
        Path(path).parent
        for value in settings.values()
        for path in re.findall(r"file://(/\S+)", value)
    }
    outside = [path for path in named if path.exists() and path.parts[1] not in ("etc", "usr")]
    environment = {
        f"PIP_{name.upper().replace('-', '_')}": value for name, value in settings.items()
    }
    return environment, [
        path for path in outside if not any(path.is_relative_to(o) for o in outside if o != path)
    ]
