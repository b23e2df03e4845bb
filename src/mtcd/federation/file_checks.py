"""Checks across the keys of a federation file: what is refused, and what to write instead."""

from __future__ import annotations

from mtcd.config.schema import PlateauSection
from mtcd.core.errors import ConfigError, did_you_mean
from mtcd.federation.names import SERVER
from mtcd.federation.participant.kinds import party_kind, party_privacy
from mtcd.federation.schema import Federation
from mtcd.methods.method import Method
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.network.topology import Network


def check_combinations(federation: Federation, method: Method) -> None:
    """Refuse keys that do not go together."""
    _check_server(federation, method)
    _check_labels(federation, method)
    _check_plateau(federation, method)
    _check_predictions(federation)
    _check_holdout(federation)
    _check_given_order(federation)


def _check_server(federation: Federation, method: Method) -> None:
    kind = federation.method.kind
    if kind == "tree-cg":
        raise ConfigError(
            "method.kind: tree-cg trains in one process only, with mtcd train. In a federation "
            "without a server use stcd (walk: tour, acceleration: conjugate), which needs about as "
            "few messages."
        )
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
    if labels.held_by not in federation.parties:
        hint = did_you_mean(labels.held_by, federation.parties)
        raise ConfigError(f"labels.held_by: no party is called {labels.held_by!r}; {hint}")
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
    looks_at_loss = isinstance(method, MTCD) and (
        method.acceleration or RULES[method.combine_rule].server_chooses
    )
    at_server = kind.labels_at_server or looks_at_loss
    if federation.server is not None and at_server and "server" not in labels.shared_with:
        linear = (
            "acceleration"
            if federation.method.acceleration
            else f"combine: {federation.method.combine}"
        )
        what = kind.labels_at_server or linear
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
    if method.kind not in ("stcd", "mtcd", "svfl") or not method.reads_objective:
        why = "mini-batches" if method.batch is not None else method.kind
        raise ConfigError(
            f"stop.plateau: with {why} no party of a federation knows the aggregate of all "
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
    for k, j in sorted(network.graph.edges):
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
