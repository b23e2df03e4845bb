"""Reading of a federation file: its keys, the checks across them, its method and its network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mtcd.config.explain import explain
from mtcd.config.schema import Config, PlateauSection, PrivacySection, SyntheticData
from mtcd.config.settings import build_settings
from mtcd.config.yaml_file import read_yaml
from mtcd.core.errors import ConfigError, NetworkError, check_known, did_you_mean
from mtcd.core.mappings import attributes, without_none
from mtcd.federation.names import SERVER
from mtcd.federation.own_code import built_in_only, check_own_names, own_names
from mtcd.federation.participant.kinds import REHEARSED_SAMPLES, party_kind, party_privacy
from mtcd.federation.schema import Federation
from mtcd.methods.messages import reads_objective
from mtcd.methods.method import Method
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network


def check_combinations(federation: Federation, method: Method) -> None:
    """Refuse keys that do not go together."""
    # The checks are in the order in which they help: whether the method fits the federation at all
    # comes before keys that may be right with another method.
    _check_server(federation, method)
    _check_labels(federation, method)
    _check_plateau(federation, method)
    _check_predictions(federation)
    _check_holdout(federation)
    _check_given_order(federation)


def _check_server(federation: Federation, method: Method) -> None:
    kind = federation.method.kind
    if federation.server is not None and not method.has_server:
        raise ConfigError(
            f"method.kind: {kind} works without a server. Leave the server out, or use mtcd, which "
            "syncs there."
        )
    if federation.server is None and method.has_server:
        raise ConfigError(
            f"method.kind: {kind} needs a server. Give server.address, or use stcd, which needs "
            "none."
        )


def _check_labels(federation: Federation, method: Method) -> None:
    """Check the label holder's consent: in the relaxed protocol, clients compute the loss
    themselves."""
    labels = federation.labels
    problem = f"labels.held_by: no party is called {labels.held_by!r};"
    check_known(labels.held_by, federation.parties, problem)
    data = federation.parties[labels.held_by].data
    for role, name in (("label", labels.column), ("weight", labels.weights)):
        if name in (data.columns or []):
            raise ConfigError(
                f"parties.{labels.held_by}.data.columns: {name!r} is the {role}, not a feature: "
                "leave it out."
            )
    if labels.weights is not None and labels.weights in (labels.column, data.id):
        raise ConfigError(
            f"labels.weights: {labels.weights!r} is the label or the id: name another column."
        )
    kind, privacy = party_kind(federation.model), party_privacy(federation.privacy)
    if labels.weights is not None and kind.no_weights:
        raise ConfigError(f"labels.weights: {kind.no_weights}")
    # A mode of privacy that keeps labels at their holder has rules of its own, and none of those
    # below, which are about who may receive labels.
    if not privacy.shares_labels:
        privacy.check_labels(federation, method)
        return
    if "server" in labels.shared_with and federation.server is None:
        raise ConfigError(
            "labels.shared_with: there is no server to share labels with. Leave 'server' out."
        )
    if "parties" not in labels.shared_with:
        raise ConfigError(
            f"labels.shared_with: with {method.kind}, every party computes the loss, which takes "
            f"the labels. If {labels.held_by!r} may share them with all parties, write "
            "'shared_with: parties'; if not, this federation cannot train."
        )
    what = kind.labels_at_server or method.loss_at_server
    if federation.server is not None and what and "server" not in labels.shared_with:
        raise ConfigError(
            f"labels.shared_with: {what} takes the labels at the server too. If the server may "
            "know them, write 'shared_with: [parties, server]'."
        )


def _check_plateau(federation: Federation, method: Method) -> None:
    """Refuse a plateau rule that no party can apply: the party that reports progress must know the
    objective."""
    plateau = federation.stop.plateau
    if plateau is None:
        return
    instead = "Stop by iterations, epochs, seconds or cost."
    # Metrics on a validation set would need the outputs of all parties for it at every test.
    if isinstance(plateau, PlateauSection) and plateau.on != "objective":
        raise ConfigError(
            "stop.plateau.on: in a federation only the objective is known while training, not "
            f"{plateau.on!r}. Leave 'on' out, or: {instead}"
        )
    kind, privacy = party_kind(federation.model), party_privacy(federation.privacy)
    if kind.no_plateau:
        raise ConfigError(f"stop.plateau: {kind.no_plateau} {instead}")
    if not privacy.shares_labels:
        privacy.check_plateau(federation, instead)
        return
    if method.kind not in ("stcd", "mtcd", "svfl") or not reads_objective(method):
        why = "mini-batches" if method.batch is not None else method.kind
        raise ConfigError(
            f"stop.plateau: with {why} no party of a federation evaluates the objective on all "
            f"samples. Train with stcd, mtcd or svfl on the full batch, or: {instead}"
        )
    if method.has_server and "server" not in federation.labels.shared_with:
        raise ConfigError(
            "stop.plateau: the server evaluates the objective at syncs, which takes the labels. "
            "If the server may know them, write 'labels.shared_with: [parties, server]'; if not, "
            f"use stcd, or: {instead}"
        )


def _check_predictions(federation: Federation) -> None:
    seen_by = federation.predictions.seen_by
    if seen_by is not None and seen_by not in federation.places:
        hint = "there is none" if seen_by == SERVER else did_you_mean(seen_by, federation.places)
        raise ConfigError(
            f"predictions.seen_by: {seen_by!r} is neither a party nor the server; {hint}"
        )


def _check_holdout(federation: Federation) -> None:
    """Refuse a hold-out whose scores the label holder must not see: it evaluates them at the
    end."""
    holder, seen_by = federation.labels.held_by, federation.predictions.seen_by
    if federation.holdout is not None and seen_by not in (None, holder):
        raise ConfigError(
            f"holdout: {holder!r} holds the labels and would see the scores of the held-out "
            f"samples, but predictions are for {seen_by!r} alone (predictions.seen_by). Leave "
            f"holdout out, or let {holder!r} see predictions."
        )


def _check_given_order(federation: Federation) -> None:
    for name, party in federation.parties.items():
        if federation.alignment == "given order" and party.data.id is not None:
            raise ConfigError(
                f"parties.{name}.data.id: 'alignment: given order' does not use ids. Leave the id "
                "out, or use alignment: psi or hashed."
            )


def check_dial_out(federation: Federation, network: Network) -> None:
    """Refuse a link that neither end can accept: tokens go from neighbour to neighbour, and are
    never relayed."""
    names = list(federation.parties)
    # Neighbours in the graph only: links to the server cannot fail here, as the server has an
    # address.
    for k, j in network.graph.edges:
        if (
            federation.parties[names[k]].dial_out_only
            and federation.parties[names[j]].dial_out_only
        ):
            raise ConfigError(
                f"network: {names[k]!r} and {names[j]!r} are neighbours, but both dial out only, "
                "so neither can accept the connection. Let one of them listen (address), or list "
                "the links without this pair (network.links); they then communicate through their "
                "other neighbours."
            )


def read_federation(path: Path) -> tuple[Federation, tuple[str, ...]]:
    """Read and check a federation file; returns it with notes on keys that have no effect."""
    content = read_yaml(path, "federation", "name, parties, labels, network, method")
    federation = check_keys(content, str(path))
    try:
        return federation, check_federation(federation)
    except (ConfigError, NetworkError) as error:
        raise type(error)(f"{path}: {error}") from None


def check_keys(content: dict[str, Any], where: str) -> Federation:
    # YAML gives None for a section with nothing below it, such as a commented-out one.
    """A Federation from plain values; the error lists every wrong key. Empty sections count as left
    out."""
    given = without_none(content)
    try:
        # The stop rule of a file without one depends on the kind of model, which is known only now.
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
    # Before the method is built: a name that cannot be loaded anywhere is the clearer error.
    method, notes = method_of(federation)
    check_combinations(federation, method)
    network = network_of(federation)
    check_dial_out(federation, network)
    # Last, as it is the most expensive check: it builds the parties, which checks all the rest.
    _rehearse(federation, method, network)
    return (*notes, *_code_notes(federation))


def _code_notes(federation: Federation) -> tuple[str, ...]:
    """Notes on the network code that parties need besides the bundle."""
    notes = []
    for key, name in own_names(federation.model).items():
        # The server needs the fusion module too; networks of clients never run there.
        who = "Every party" if key == "client" else "Every party and the server"
        file = f"{name.partition(':')[0].replace('.', '/')}.py"
        notes.append(
            f"model.{key}: {name} is custom code. {who} must name its file when it starts: "
            f"--code {file}"
        )
    return tuple(notes)


def method_of(federation: Federation) -> tuple[Method, tuple[str, ...]]:
    """The method, with notes about it; model, method, stop and costs are checked as those of a
    config are."""
    parts = ("model", "method", "stop", "costs", "compute", "seed")
    # the data are with the parties
    nothing = SyntheticData(synthetic="ridge", samples=1, features=1, clients=1)
    given = attributes(federation, parts) | {"model": built_in_only(federation.model)}
    given |= {"privacy": federation.privacy or PrivacySection()}
    # Not validated: the sections were, as parts of the federation file, and the data are a
    # placeholder.
    config = Config.model_construct(data=nothing, **given)
    method, notes, _, costs = build_settings(config)
    # These two rules are fine in one process. They are refused here and not in the schema, as a
    # config has the same section.
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
    section, names = federation.network, tuple(federation.parties)
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
    method.check(network)
    # the numbers of columns are made up here: those of the tables are checked when the parties meet
    settled: Any = method.conditions.rehearsal(method.with_stepsize(1.0))
    if settled.batch is not None:
        # A batch larger than the rehearsal's samples would be refused there, though the real tables
        # may be large enough.
        settled = replace(settled, batch=min(settled.batch, REHEARSED_SAMPLES))
    party_kind(federation.model).rehearse(federation, method, settled, network)
