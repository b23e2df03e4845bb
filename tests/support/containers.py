"""The Dockerfile and the compose file in deploy/, as a builder reads them."""

import json
import re
import shlex
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from project import ROOT

DEPLOY = ROOT / "deploy"
DOCKERFILE, COMPOSE = DEPLOY / "Dockerfile", DEPLOY / "compose.yaml"


class Instruction(NamedTuple):
    """One of a Dockerfile: COPY, and what follows."""

    word: str
    text: str


def instructions() -> list[Instruction]:
    """Of the Dockerfile, without comments, with lines joined and arguments in the place of their
    names."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    lines = [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    known: dict[str, str] = {}
    found = []
    for word, _, rest in (line.partition(" ") for line in lines):
        if word == "ARG":
            name, equals, value = rest.partition("=")
            if equals:
                known[name] = value
            rest = f"{name}={known[name]}"  # without a value, it is that of before the first stage
        elif word == "FROM":
            rest = re.sub(r"\$\{(\w+)\}", lambda match: known[match[1]], rest)
        found.append(Instruction(word, rest.strip()))
    return found


def stages() -> dict[str, list[Instruction]]:
    """By name, the last one as ''."""
    found: dict[str, list[Instruction]] = {}
    for one in instructions():
        if one.word == "FROM":
            name = one.text.partition(" AS ")[2]
            found[name] = []
        if found:
            found[name].append(one)
    return found


def words(text: str) -> list[str]:
    """A list in JSON, or words for a shell."""
    return [str(word) for word in json.loads(text)] if text.startswith("[") else ["sh", "-c", text]


def health_command() -> list[str]:
    """What HEALTHCHECK runs."""
    (text,) = [one.text for one in instructions() if one.word == "HEALTHCHECK"]
    return words(text.partition("CMD ")[2])


@dataclass(frozen=True)
class Mount:
    """Where something of the host, or of a volume, lies in a container."""

    source: str
    target: str
    volume: bool
    subpath: str = ""
    read_only: bool = False


@dataclass(frozen=True)
class Service:
    """Of the compose file."""

    name: str
    settings: dict[str, Any]
    mounts: list[Mount] = field(default_factory=list)

    @property
    def arguments(self) -> list[str]:
        """Of its program: the entrypoint's, if the service names one, and the command's."""
        entrypoint = self.settings.get("entrypoint")
        return [
            *(entrypoint if entrypoint is not None else default_entrypoint()),
            *self.settings["command"],
        ]

    def command_lines(self) -> list[list[str]]:
        """The command lines of mtcd, also those in a line for a shell."""
        arguments = self.arguments
        if arguments[:2] == ["sh", "-c"]:
            lines = [shlex.split(part) for part in re.split(r"\|\||&&|;", arguments[2])]
            return [line for line in lines if line[0] == "mtcd"]
        return [arguments]


def default_entrypoint() -> list[str]:
    """Of the image."""
    (text,) = [one.text for one in stages()[""] if one.word == "ENTRYPOINT"]
    return words(text)


def compose() -> dict[str, Any]:
    """The compose file."""
    content: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return content


def services() -> dict[str, Service]:
    """By name."""
    return {
        name: Service(name, given, [*map(_mount, given["volumes"])])
        for name, given in compose()["services"].items()
    }


def _mount(given: dict[str, Any]) -> Mount:
    subpath = given.get("volume", {}).get("subpath", "")
    return Mount(
        given["source"],
        given["target"],
        given["type"] == "volume",
        subpath,
        given.get("read_only", False),
    )
