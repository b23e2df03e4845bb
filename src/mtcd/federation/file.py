"""Reading of a federation file; its method and network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mtcd.config.explain import explain
from mtcd.config.schema import Config, PrivacySection, SyntheticData
from mtcd.config.settings import build_settings
from mtcd.config.yaml_file import read_yaml
from mtcd.core.errors import ConfigError, NetworkError, did_you_mean
from mtcd.federation.file_checks import check_combinations, check_dial_out
from mtcd.federation.names import SERVER
from mtcd.federation.own_code_files import built_in_only, check_own_names, own_names
from mtcd.federation.participant.kinds import REHEARSED_SAMPLES, party_kind
from mtcd.federation.schema import Federation
from mtcd.methods.method import Method
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network


def read_federation(path: Path) -> tuple[Federation, tuple[str, ...]]:
    """Read and check a federation file; returns it with notes on keys that have no effect."""
    content = read_yaml(path, "federation", "name, parties, labels, network, method")
    federation = check_keys(content, str(path))
    try:
        return federation, check_federation(federation)
    except (ConfigError, NetworkError) as error:
        raise type(error)(f"{path}: {error}") from None


def check_keys(content: dict[str, Any], where: str) -> Federation:
    """A Federation from plain values; the error lists every wrong key. Empty sections count as left
    out."""
    given = {key: value for key, value in content.items() if value is not None}
    try:
        federation = Federation.model_validate(given)
        stop = party_kind(federation.model).default_stop()
        if stop is not None and "stop" not in given:
            return federation.model_copy(update={"stop": stop})
        return federation
    except ValidationError as error:
        raise ConfigError(f"{where}: {explain(error, given, Federation)}") from None


def check_federation(federation: Federation) -> tuple[str, ...]:
    """Refuse invalid combinations of keys; returns notes."""
    check_own_names(federation.model)
    method, notes = method_of(federation)
    check_combinations(federation, method)
    network = network_of(federation)
    check_dial_out(federation, network)
    _rehearse(federation, method, network)
    return (*notes, *_code_notes(federation))


def _code_notes(federation: Federation) -> tuple[str, ...]:
    """Notes on the network code that parties need besides the bundle."""
    return tuple(
        f"model.{key}: {name} is custom code. "
        f"{'Every party' if key == 'client' else 'Every party and the server'} must name its file "
        f"when it starts: --code {name.partition(':')[0].replace('.', '/')}.py"
        for key, name in own_names(federation.model).items()
    )


def method_of(federation: Federation) -> tuple[Method, tuple[str, ...]]:
    """The method, with notes about it; model, method, stop and costs are checked as those of a
    config are."""
    parts = ("model", "method", "stop", "costs", "compute", "seed")
    # the data are with the parties
    nothing = SyntheticData(synthetic="ridge", samples=1, features=1, clients=1)
    given = {part: getattr(federation, part) for part in parts} | {
        "model": built_in_only(federation.model)
    }
    given |= {"privacy": federation.privacy or PrivacySection()}
    config = Config.model_construct(data=nothing, **given)
    method, notes, _, costs = build_settings(config)
    if federation.stop.gap is not None:
        raise ConfigError(
            "stop.gap: the gap needs the optimum, which no party of a federation can compute. Stop "
            "by iterations, epochs, seconds or cost."
        )
    if federation.stop.cost is not None and costs.account == "sent":
        raise ConfigError(
            "stop.cost: no party of a federation knows what all have sent. Use costs.account: "
            "charged, or stop by iterations, epochs or seconds."
        )
    return method, notes


def network_of(federation: Federation) -> Network:
    """The network of the parties; clients are numbered in the order of the file."""
    section, names = federation.network, list(federation.parties)
    if section.links is None:
        seed = federation.seed if section.seed is None else section.seed
        return make_network(
            str(section.kind),
            names,
            p=section.p,
            rows=section.rows,
            radius=section.radius,
            seed=seed,
        )
    for i, pair in enumerate(section.links):
        for name in pair:
            if name not in federation.parties:
                hint = did_you_mean(name, names)
                if name == SERVER:
                    hint = "every party has a link to the server: leave the server out of the links"
                raise NetworkError(f"network.links.{i}: no party is called {name!r}; {hint}")
        if pair[0] == pair[1]:
            raise NetworkError(
                f"network.links.{i}: {pair[0]!r} is linked to itself: leave this link out."
            )
    return network_from_edges([(a, b) for a, b in section.links], names)


def _rehearse(federation: Federation, method: Method, network: Network) -> None:
    """Make the parties on a few synthetic samples, which refuses all settings that ``mtcd train``
    refuses."""
    method.check_network(network)
    # the numbers of columns are made up here: those of the tables are checked when the parties meet
    settled: Any = method.with_stepsize(1.0).rehearsal()
    if settled.batch is not None:
        settled = replace(settled, batch=min(settled.batch, REHEARSED_SAMPLES))
    party_kind(federation.model).rehearse(federation, method, settled, network)
