"""Command lines of mtcd in files that others run: parsed as the program does, without running
them."""

from typing import Any

import typer.main

from mtcd.cli.app import app


def parsed(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """The command, with its groups, and its options; a usage error where the program would end with
    one."""
    command: Any = typer.main.get_command(app)
    context = command.context_class(command, info_name="mtcd")
    names: list[str] = []
    while hasattr(command, "resolve_command"):
        name, command, arguments = command.resolve_command(context, arguments)
        names.append(name)
        if hasattr(command, "resolve_command"):
            context = command.context_class(command, parent=context, info_name=name)
        else:
            context = command.make_context(name, list(arguments), parent=context)
    return " ".join(names), context.params
