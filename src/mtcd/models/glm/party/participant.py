"""The participant of a federation: a table, and the party's part of a linear model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, DataError, WireError
from mtcd.core.received import is_whole
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.node.log import Log
from mtcd.federation.node.opening import Agreed
from mtcd.federation.node.watch import Watch
from mtcd.federation.participant.held_out import (
    Drawn,
    advised,
    check_fits,
    drawn,
    held_out_of,
    with_held_out,
)
from mtcd.federation.participant.keeping import Summary, keep_block
from mtcd.federation.participant.kinds import party_kind
from mtcd.federation.participant.labels import labels_from_bytes, labels_to_bytes
from mtcd.federation.participant.node_table import ParticipantTable, summary_of
from mtcd.federation.participant.participant import Role
from mtcd.federation.participant.table import LossError, PartyTable
from mtcd.methods.messages import reads_objective
from mtcd.methods.method import resolved_stepsize
from mtcd.methods.mtcd.server import TokenClient
from mtcd.models.glm.evaluation import known_labels, linear_outputs
from mtcd.models.glm.party.block import PartyBlock
from mtcd.models.glm.party.own_block import OwnBlock
from mtcd.models.glm.party.problem import (
    glm_of,
    own_part,
    penalty_scale,
    scale_of,
    server_problem,
    start_of,
    without_classes,
)
from mtcd.models.glm.party.stepsize import CurvatureReport, own_curvature, resolve_from_reports
from mtcd.models.label_noise import counted
from mtcd.models.losses import Loss
from mtcd.models.losses.own import check_own_loss
from mtcd.models.metrics import all_metrics
from mtcd.protocol.party import Client, Party
from mtcd.protocol.token import Token
from mtcd.training.divergence import Divergence, worst_end_of
from mtcd.training.plateau import WINDOWS


class LinearParticipant(ParticipantTable):
    """A table and a generalised linear model."""

    def __init__(self, bundle: Bundle, table: PartyTable | None) -> None:
        super().__init__(bundle, table)
        # Before any connection is opened: other parties would wait for labels that cannot be used.
        if table is not None and table.labels is not None:
            self.check_labels(table.labels, table.weights)

    def check_labels(self, labels: Any, weights: Array | None) -> None:
        """Refuse early labels that the model cannot use, and a loss that contradicts itself."""
        model = glm_of(self.config)
        _, encoded, _ = model.weighted(labels, weights)
        check_loss(model.loss, encoded)

    def check_own_loss(self, encoded: Array) -> None:
        """Refuse a loss of the user's own that contradicts itself, given the encoded labels."""
        check_loss(glm_of(self.config).loss, encoded)

    def held_weights(self, rows: Sequence[int]) -> Array | None:
        """The weights of these rows to train on, at the label holder; None if samples have none."""
        if self.own.weights is None:
            return None
        weights: Array = self.own.weights[list(rows)]
        if not weights.any():
            raise DataError(
                "All common samples to train on have weight 0: give some of them more "
                "(labels.weights, --weights)."
            )
        return weights

    def labels_for_facts(self, rows: Sequence[int]) -> bytes:
        """The labels and weights of samples, if these or their classes have weights: the curvature
        depends on them."""
        training, model = drawn(self.config, rows).training, glm_of(self.config)
        labels, weights = self.held_labels(training), self.held_weights(training)
        if weights is None and model.class_weight is None:
            # Without weights the step size does not depend on the labels, which then stay here
            # until the parties have agreed.
            return b""
        # refuse here, where the labels may be told, what the model cannot use
        model.weighted(labels, weights)
        return labels_to_bytes(labels, weights)

    def facts(self, rows: Sequence[int], labels: bytes = b"") -> bytes:
        """The curvature of this party's block, from which the step size is resolved."""
        taken, config, weights = drawn(self.config, rows), self.config, None
        if labels:
            known, weights = labels_from_bytes(labels, len(taken.training))
        elif glm_of(config).class_weight is not None:
            raise WireError(
                "labels", "are missing, on which the step size depends with model.class_weight"
            )
        else:  # without weights, the curvature does not depend on labels
            config, known = without_classes(config), np.resize([0.0, 1.0], len(taken.training))
        return own_curvature(
            own_part(config, self.own, taken.training, known, taken.held_out, weights)
        ).to_bytes()

    def resolve(
        self, rows: Sequence[int], facts: Mapping[str, bytes]
    ) -> tuple[dict[str, Any], bytes]:
        """The settings with sizes and step size, and the labels, which this party holds."""
        taken = drawn(self.config, rows)
        labels, weights = self.held_labels(taken.training), self.held_weights(taken.training)
        problem = own_part(self.config, self.own, taken.training, labels, weights=weights).problem
        # Reports must be of the loss that all train with: with weights they have one number more.
        weighted = problem.loss.sample_weights is not None
        reported = [_curvature(name, facts[name], weighted) for name in self.config.parties]
        method, notes = resolve_from_reports(self.method, problem, reported)
        sizes = {"samples": problem.samples, "outputs": problem.outputs}
        # A method without one is told a number all the same: the settings of all runs are alike.
        stepsize = 1.0 if method.stepsize is None else resolved_stepsize(method)
        rest = {"stepsize": stepsize, "notes": [*notes, *taken.notes]}
        return sizes | rest, labels_to_bytes(labels, weights)

    def role(self, agreed: Agreed, log: Log) -> Role:
        """Client k with its own block, or the server."""
        settings, config = self.checked(agreed.settings, "outputs"), self.config
        samples, outputs = settings["samples"], settings["outputs"]
        # Each party has a column of the aggregate per output, and none has more classes than
        # samples.
        if not is_whole(outputs, 1, samples):
            raise WireError("outputs", "is out of range")
        method, network = self.method.with_stepsize(settings["stepsize"]), config.network
        self.resolved = method
        labels, problem = self._problem(agreed, samples, outputs)
        # The number of outputs decides the size of all messages. It must be that of the labels
        # which this party has, not only what the label holder says.
        if problem.outputs != outputs:
            raise WireError("outputs", "are not those of the labels")
        messages = method.messages(network, config.seed, samples, outputs)
        bounds = messages.bounds(agreed.run)
        # Without a server, the window of the plateau rule travels with the token.
        if not method.has_server and self.stop.plateau is not None:
            bounds = bounds.with_slots(WINDOWS.name)
        if labels is not None:
            # the plug-in of this host, which need not be that of the label holder
            self.check_own_loss(problem.labels)
        self.labels, self.problem = labels, problem

        # without labels a party knows neither the objective nor whether it diverges
        reads, rule = None, None
        if labels is not None:
            rule = Divergence(start_of(problem), worst_end_of(method, linear=True))
            if reads_objective(method):
                reads = problem

        self.rule = rule
        watch = Watch(
            self.stop,
            method,
            network,
            self.costs,
            bounds.tokens or 1,
            samples,
            log,
            reads,
            rule,
            messages.sizes,
        )
        parties = method.parties(problem, network, config.seed)
        # One token and no rounds: whoever has the token can tell f from it, at the end too.
        lone = parties.server is None and parties.rounds is None
        notes = self.agreed_notes(settings)
        if self.table is not None:  # those on this party's columns stay here
            notes = tuple(dict.fromkeys([*notes, *self.part.notes]))
        # What the token tells at the end, it tells wherever it is then: held-out samples, and the
        # holder's own labels, need the sum at the label holder.
        summed = not lone or config.holdout is not None or config.label_privacy is not None
        return Role(parties, bounds, watch, reads, notes, evaluated_at_end=summed, judged=lone)

    def _problem(self, agreed: Agreed, samples: int, outputs: int) -> tuple[Any, Any]:
        """The labels that this party has, and its own problem, or that of the server."""
        labels, weights = None, None
        if agreed.labels:
            labels, weights = labels_from_bytes(agreed.labels, samples)

        # The table is None at the server alone.
        if self.table is None:
            return labels, self.server_problem(samples, outputs, labels, weights)
        if labels is None:
            raise WireError("labels", "are missing")

        taken = self.drawn(agreed)
        self._check_weights(taken.training, weights)
        self.part = self.own_part(taken, labels, weights)
        problem = self.part.problem
        self.held_out = self._held_out_labels(taken, problem.classes)
        self.taken = taken
        check_fits((samples + len(taken.held_out)) * outputs, self.config)
        return labels, problem

    def server_problem(self, samples: int, outputs: int, labels: Any, weights: Array | None) -> Any:
        """The problem at the server."""
        return server_problem(self.config, samples, outputs, labels, weights)

    def own_part(self, taken: Drawn, labels: Any, weights: Array | None) -> Any:
        """This party's part of the model."""
        return own_part(self.config, self.own, taken.training, labels, taken.held_out, weights)

    def _held_out_labels(self, taken: Drawn, classes: tuple[str | float, ...]) -> NDArray[Any]:
        """The labels of the held-out samples as metrics use them; none at parties that do not hold
        them."""
        with advised():
            labels: Any = np.empty(0)
            if self.own.labels is not None:
                labels = self.held_labels(taken.held_out)
            return known_labels(labels, classes)

    def _check_weights(self, rows: Sequence[int], agreed: Array | None) -> None:
        """At the label holder after a restart: a column is not the weights in one start, and a
        feature in the next."""
        if self.own.labels is None:
            return
        held = self.held_weights(rows)
        both = held is not None and agreed is not None
        same = both and np.array_equal(np.asarray(held), np.asarray(agreed))
        if not same and not (held is None and agreed is None):
            raise DataError(
                "The weights are not those that this run began with: give the same --weights as "
                "before."
            )

    def evidence(self, party: Party) -> NDArray[np.float64]:
        """h_k on all samples and r(theta_k), scaled by the labels, so that sums of them fit into a
        pass."""
        assert isinstance(party, Client)
        problem, theta = self.part.problem, party.parameters()
        model = problem.client(self.part.number)
        # Overflow means divergence, and is told by the numbers themselves.
        with np.errstate(all="ignore"):
            z = model.represent(theta).ravel() / scale_of(problem)
            part = np.append(z, model.penalty(theta) / penalty_scale(problem))
            if self.part.held_out is None:
                return part
            return with_held_out(
                part,
                self.part.held_out_outputs(theta) / scale_of(problem),
                len(self.config.parties),
            )

    def has_diverged(self, total: NDArray[np.float64]) -> bool:
        """Apply the divergence rule to f at the end."""
        assert self.rule is not None  # this party holds the labels
        problem = self.part.problem
        penalty = float(total[problem.labels.size]) * penalty_scale(problem)
        return self.rule.at_the_end(problem.read_off(self.aggregate(total), penalty))

    def aggregate(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """The aggregate of all training samples, given the sum of all parts."""
        problem = self.part.problem
        return np.asarray(
            (total[: problem.labels.size] * scale_of(problem)).reshape(problem.labels.shape)
        )

    def metrics(self, aggregate: NDArray[np.float64]) -> dict[str, float]:
        """All metrics on the training samples; none at a server that does not know the labels."""
        if self.labels is None:
            return {}
        return self._measured("train", known_labels(self.labels, self.problem.classes), aggregate)

    def held_out_metrics(self, total: NDArray[np.float64]) -> dict[str, float]:
        """All metrics on the held-out samples, given the sum of all parts; none if it has no
        outputs for them."""
        z = self._held_out_aggregate(total)
        return {} if z is None else self._measured("test", self.held_out, z)

    def own_metrics(self, total: NDArray[np.float64]) -> dict[str, float]:
        """Metrics on the labels of the table, where others see other ones."""
        classes = self.problem.classes
        own = self.own_labels(self.taken.training)
        if not own.size:
            return {}

        labels = known_labels(counted(own, classes), classes)
        found = self._measured("train", labels, self.aggregate(total))
        z = self._held_out_aggregate(total)
        apart = self.own_labels(self.taken.held_out)
        if z is not None and apart.size:
            found |= self._measured("test", known_labels(counted(apart, classes), classes), z)
        return found

    def _held_out_aggregate(self, total: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The aggregate of the held-out samples, given the sum of all parts; None if it has no
        outputs for them."""
        problem = self.part.problem
        # After the outputs comes one number, the sum of the penalties.
        outputs = held_out_of(total, problem.labels.size + 1)
        if outputs is None:
            return None
        return (outputs * scale_of(problem)).reshape(-1, *problem.labels.shape[1:])

    def _measured(
        self, part: str, labels: NDArray[Any], aggregate: NDArray[np.float64]
    ) -> dict[str, float]:
        loss, classes = self.problem.loss, self.problem.classes
        outputs = linear_outputs(loss, classes, labels, aggregate)
        return all_metrics(len(classes), loss.gives_probabilities).measured(part, outputs)

    def gap_part(self, party: Party, token: Any) -> float | None:
        """This party's part of the duality gap, for the model that the token aggregates."""
        if not isinstance(party, TokenClient) or not isinstance(token, Token):
            return None
        part: float | None = self.part.gap_part(party.copy_for(token), token.aggregate)
        return part

    def keep(
        self,
        folder: Path,
        reliable: ReliableParty,
        watch: Watch,
        notes: Sequence[str],
        unjudged: str,
    ) -> Summary:
        """Write the block and a summary into the run folder."""
        summary = summary_of(
            folder, self.config, self.resolved, self.costs, reliable, watch, notes, unjudged
        )
        stale = party_kind(self.config.model).block_files
        if self.table is None:
            return keep_block(folder, summary, None, stale)
        party = reliable.party
        assert isinstance(party, Client)
        return keep_block(folder, summary, self.block(party.parameters()), stale)

    def block(self, theta: Any) -> OwnBlock:
        """The block of these parameters."""
        return PartyBlock.of(self.part, theta)


def check_loss(loss: Loss, encoded: Array, bounded: bool = True) -> None:
    """Refuse a loss of the user's own that contradicts itself: see ``check_own_loss``.

    Raises
    ------
    LossError
        With the details, which may depend on the labels: others are told the kind of error only.
    """
    try:
        check_own_loss(loss, encoded, bounded)
    except ConfigError as error:
        # The original error may show labels, so it is not chained.
        raise LossError(str(error)) from None


def _curvature(name: str, answer: bytes, weighted: bool) -> CurvatureReport:
    try:
        return CurvatureReport.from_bytes(answer, weighted)
    except WireError as error:
        raise DataError(f"{name}: {error}") from None
