"""Modules by name: the built-in networks, or a function of the user, 'package.module:function'."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mtcd.core.errors import ConfigError, MtcdError, did_you_mean
from mtcd.core.own_code import imported
from mtcd.models.splitnet.feed import draw_seed
from mtcd.models.splitnet.modules import seeded
from mtcd.models.splitnet.nets import FUSIONS, NETS

Maker = Callable[..., nn.Module]
CPU = torch.device("cpu")


Load = Callable[[str, str], Any]
"""Returns the object named 'package.module:function'; the second argument is the prefix of
errors."""


def client_maker(name: str, load: Load) -> Maker:
    """The function that makes the clients' networks; ``load`` finds those that are not built in."""
    return _find_maker(name, NETS, "model.client", load)


def fusion_maker(name: str, load: Load) -> Maker:
    """The function that makes the fusion module."""
    return _find_maker(name, FUSIONS, "model.fusion", load)


def _find_maker(name: str, known: Mapping[str, Maker], where: str, load: Load) -> Maker:
    if ":" not in name:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ConfigError(
                f"{where}: no network is called {name!r}; {hint} Your own is "
                f"'package.module:function'."
            )
        return known[name]
    found = load(name, where)
    if not callable(found):
        raise ConfigError(f"{where}: {name!r} is no function or class that makes a module.")
    maker: Maker = found
    return maker


def importing(folder: Path | None) -> Load:
    """Import the named object, from ``folder`` first, then from here or installed packages. This
    runs its code."""
    # The folder first: a module of the user may have the name of an installed package.
    return lambda name, where: imported(name, where, [folder or Path.cwd(), Path.cwd()])


def make(
    maker: Maker, where: str, facts: Mapping[str, Any], settings: Mapping[str, Any], seed: int
) -> nn.Module:
    """A module, from the facts that its maker names as parameters and from the settings,
    initialised by the seed."""
    parameters = inspect.signature(maker).parameters
    takes_all = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    unknown = [name for name in settings if name not in parameters]
    if unknown and not takes_all:
        hint = did_you_mean(unknown[0], [name for name in parameters if name not in facts])
        raise ConfigError(f"{where}: there is no setting {unknown[0]!r}; {hint}")
    # Settings win: a user may set what is otherwise known from the data.
    given = {name: value for name, value in facts.items() if name in parameters} | dict(settings)
    try:
        with seeded(seed, CPU):
            made = maker(**given)
    except MtcdError as error:
        raise ConfigError(f"{where}: {error}") from None
    except Exception as error:  # the user's code may raise anything
        raise ConfigError(
            f"{where}: the network cannot be made ({type(error).__name__}: {error})."
        ) from None
    if not isinstance(made, nn.Module):
        raise ConfigError(
            f"{where}: what was made is a {type(made).__name__}, not a torch.nn.Module."
        )
    return made


def make_client(
    maker: Maker,
    clients: Sequence[str],
    k: int,
    shape: tuple[int, ...],
    settings: Mapping[str, Any],
    seed: int,
) -> nn.Module:
    """The module of client k. A maker may have parameters client (its name), index, shape (of a
    sample), clients."""
    facts = {"client": clients[k], "index": k, "shape": shape, "clients": len(clients)}
    # The seed depends on k alone: a party of a federation makes the network that one process would.
    return make(maker, "model.client", facts, settings, draw_seed(seed, "network", k))


def make_fusion(
    maker: Maker, width: int, outputs: int, settings: Mapping[str, Any], seed: int
) -> nn.Module:
    """A fusion module. A maker may have parameters width (of the aggregate) and outputs."""
    facts = {"width": width, "outputs": outputs}
    return make(maker, "model.fusion", facts, settings, draw_seed(seed, "fusion"))
