"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import re
from typing import Any

import typer

from documentation.tables import table
from mtcd.cli.app import app


def command_reference() -> str:
    """All commands, each with its usage, its text and its options."""
    return "\n".join(_described("mtcd", typer.main.get_command(app)))


def _described(name: str, command: Any) -> list[str]:
    """A command and those below it; a group has no options of its own worth a table."""
    inner = {key: one for key, one in getattr(command, "commands", {}).items() if not one.hidden}
    shown = [one for one in command.params if not one.hidden]
    if inner:
        lines = [f"## {name}", "", _plain(command.help or ""), "", _plain(command.epilog or ""), ""]
        lines += [
            *table(
                ["command", "does"],
                [[_link(f"{name} {key}"), _first(one)] for key, one in inner.items()],
            )
        ]
    else:
        lines = [f"### {name}", "", f"`{_usage(name, shown)}`", "", _plain(command.help or ""), ""]
        rows = [[_names(one), _plain(one.help or ""), _default(one)] for one in shown]
        lines += table(["argument or option", "meaning", "default"], rows) if rows else []
    for key, one in inner.items():
        lines += ["", *_described(f"{name} {key}", one)]
    return lines


def _plain(text: str) -> str:
    """Without the marks of rich, and each paragraph in one line."""
    text = re.sub(r"\[/?bold\]", "`", text).replace("\\[", "[").strip()
    return re.sub(r"(?<=\S)\n(?=\S)", " ", text)


def _first(command: Any) -> str:
    return _plain(command.help or "").split("\n\n")[0]


def _link(name: str) -> str:
    return f"[`{name}`](#{name.replace(' ', '-')})"


def _is_argument(parameter: Any) -> bool:
    return not parameter.opts[0].startswith("-")


def _value(parameter: Any) -> str:
    return parameter.metavar or parameter.name.upper()


def _usage(name: str, parameters: list[Any]) -> str:
    arguments = [one for one in parameters if _is_argument(one)]
    words = [
        _value(one).removesuffix("...") + ("..." if one.nargs == -1 else "") for one in arguments
    ]
    words = [
        word if one.required else f"[{word}]" for word, one in zip(words, arguments, strict=True)
    ]
    return " ".join([name, *words, *(["[OPTIONS]"] if len(arguments) < len(parameters) else [])])


def _names(parameter: Any) -> str:
    if _is_argument(parameter):
        return f"`{_value(parameter)}`"
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} `{_value(parameter)}`"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    return "" if parameter.default in (None, False) else f"`{parameter.default}`"
