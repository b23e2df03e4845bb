"""The participant of a federation that trains a split network: a table and the party's own
network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mtcd.core.errors import ConfigError, DataError, WireError
from mtcd.core.files import WEIGHTS
from mtcd.core.received import are_whole, is_whole, read_json
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.node.log import Log
from mtcd.federation.node.opening import Agreed
from mtcd.federation.node.watch import Watch
from mtcd.federation.own_code import SHA256
from mtcd.federation.participant.held_out import (
    Drawn,
    advised,
    check_fits,
    drawn,
    held_out_of,
    with_held_out,
)
from mtcd.federation.participant.keeping import Summary, keep_block
from mtcd.federation.participant.labels import labels_from_bytes, labels_to_bytes
from mtcd.federation.participant.node_table import ParticipantTable, summary_of
from mtcd.federation.participant.participant import Role
from mtcd.federation.participant.table import PartyTable
from mtcd.methods.method import resolved_stepsize
from mtcd.models.label_noise import counted
from mtcd.models.metrics import all_metrics, class_numbers
from mtcd.models.splitnet.client import NetClient
from mtcd.models.splitnet.labels import encode, split_outputs
from mtcd.models.splitnet.own import OwnProblem
from mtcd.models.splitnet.party.block import (
    NetworkBlock,
    fusion_to_bytes,
    module_to_bytes,
    read_network_block,
)
from mtcd.models.splitnet.party.networks import (
    WIDEST,
    OwnNetwork,
    fusion_code,
    own_fusion_maker,
    own_maker,
    own_network,
    server_network,
    split_shapes,
    threads_for,
)
from mtcd.models.splitnet.party.objective import (
    fits_into_message,
    objective,
    part_of,
    represented,
    represented_at_start,
)
from mtcd.models.splitnet.setup import opening_cost, split_bounds, split_parties, split_sizes
from mtcd.models.splitnet.training import check_split, outside_guarantee, pace_of
from mtcd.protocol.model import SplitStage
from mtcd.protocol.party import Party
from mtcd.training.divergence import Divergence, worst_end_of

FUSION_CODE = "fusion_code"
NOT_EVALUATED = (
    "The objective is not evaluated at the end, as the representations of all samples do not fit "
    "into a message: slow divergence is not detected. To evaluate it, set a larger "
    "limits.message_mb in the federation file."
)


class SplitParticipant(ParticipantTable):
    """A table and a network; at the server, the fusion module. Modules are rebuilt whenever
    training starts."""

    def __init__(self, bundle: Bundle, table: PartyTable | None) -> None:
        super().__init__(bundle, table)
        check_split(self.method, self.stop)
        own_fusion_maker(self.config, bundle.code)  # refuse early what cannot be loaded
        if table is not None:
            own_maker(self.config, bundle.code)
        self.own_network: OwnNetwork | None = None
        self.problem: OwnProblem
        self.stage: SplitStage
        self.start: torch.Tensor
        """At a party, h_k of all training samples before the first update."""
        self.fusion: bytes | None = None
        """The final theta_0, once it is known."""

    def labels_for_facts(self, rows: Sequence[int]) -> bytes:
        """Nothing: the width does not depend on labels."""
        return b""

    def facts(self, rows: Sequence[int], labels: bytes = b"") -> bytes:
        """The width of this party's representation."""
        # Without weights the widths are all that the parties must agree on.
        if labels:
            raise WireError("labels", "come with weights, which split networks do not take")
        taken = drawn(self.config, rows)
        made = own_network(self.config, self.bundle.code, self.own, taken.training, taken.held_out)
        return json.dumps(made.width).encode()

    def resolve(
        self, rows: Sequence[int], facts: Mapping[str, bytes]
    ) -> tuple[dict[str, Any], bytes]:
        """The settings with the widths of all parties, and the labels, which this party holds."""
        widths = [_width(name, facts[name]) for name in self.config.parties]
        taken = drawn(self.config, rows)
        labels = self.held_labels(taken.training)
        notes = [*self.notes, *outside_guarantee(self.method), *taken.notes]
        stepsize = resolved_stepsize(self.method)
        settings = {"samples": len(labels), "widths": widths, "stepsize": stepsize, "notes": notes}
        return settings | {
            FUSION_CODE: fusion_code(self.config, self.bundle.code)
        }, labels_to_bytes(labels)

    def role(self, agreed: Agreed, log: Log) -> Role:
        """Client k with its own network, or the server with the fusion module."""
        settings = self.checked(agreed.settings, "widths", FUSION_CODE)
        # The fusion module computes the loss: with another one at one party, the tokens of all
        # would be of different functions.
        config = self.config
        self._check_fusion_code(settings[FUSION_CODE])
        widths = settings["widths"]
        samples = settings["samples"]
        _check_widths(widths, len(config.parties))
        self._make_networks(agreed, samples, widths)
        threads = threads_for(self.problem, self.method)
        if threads is not None:
            torch.set_num_threads(threads)
        method, network = self.method, config.network
        shapes = split_shapes(self.problem)
        bounds = split_bounds(
            method, agreed.run, network, config.seed, samples, self.problem.outputs, shapes
        )
        parties = split_parties(method, self.problem, network, config.seed)
        self.stage = parties.stage
        plan = parties.clients[0].plan
        theta_0 = self.problem.fusion.size
        sizes = split_sizes(plan, widths, theta_0)
        opening = opening_cost(plan, widths, theta_0, self.costs)
        watch = Watch(
            self.stop,
            method,
            network,
            self.costs,
            plan.tokens,
            samples,
            log,
            sizes=sizes,
            opening_cost=opening,
            finite=lambda: self.problem.is_finite,
            seen=lambda: self.stage.epoch_loss(),
            pace=pace_of(method, self.stop, samples),
        )
        # Before training: a run of days must not end with a sum that cannot be sent.
        fits = fits_into_message(
            samples, self.problem.outputs, len(widths), config.limits.message_mb
        )
        # with a hold-out, parties refuse what does not fit
        evaluated = fits or config.holdout is not None
        if evaluated and self.problem.own is not None:
            client = parties.clients[self.problem.own.k].network
            assert isinstance(client, NetClient)
            represents_first = plan.hops is not None or bool(plan.first_pass)
            self.start = represented_at_start(self.problem, client, represents_first)
        own: tuple[str, ...] = ()
        if self.own_network is not None:
            own = self.own_network.notes
        notes = (*self.agreed_notes(settings), *own)
        if not evaluated:
            notes = (*notes, NOT_EVALUATED)
        return Role(parties.parties(), bounds, watch, None, notes, evaluated_at_end=evaluated)

    def _make_networks(self, agreed: Agreed, samples: int, widths: list[int]) -> None:
        """The networks that this party holds: its own, or that of the server, with the labels."""
        config, code = self.config, self.bundle.code
        labels, weights = labels_from_bytes(agreed.labels, samples)
        if weights is not None:
            raise WireError("labels", "come with weights, which split networks do not take")

        # Only the server has no table.
        if self.table is None:
            self.problem = server_network(config, code, labels, widths)
            return

        taken = self.drawn(agreed)
        self.own_network = own_network(config, code, self.table, taken.training, taken.held_out)
        if widths[config.parties.index(config.name)] != self.own_network.width:
            raise WireError("widths", "are not those that the parties have told")
        self.problem = self.own_network.problem(labels, widths)
        self.held_out = self._held_out_labels(taken)
        self.taken = taken
        check_fits((2 * samples + len(taken.held_out)) * self.problem.outputs, config)

    def evidence(self, party: Party) -> NDArray[np.float64]:
        """This party's part of the aggregate of all training samples, at the start and at the
        end."""
        part = np.stack([part_of(self.problem, h) for h in (self.start, represented(self.problem))])
        own = self.own_network
        if own is None or own.held_out is None:
            return part
        held_out = part_of(self.problem, represented(self.problem, own.held_out))
        return with_held_out(part, held_out, len(self.config.parties))

    def has_diverged(self, total: NDArray[np.float64]) -> bool:
        """Compare the objective at the end with that at the start, each with its theta_0."""
        problem = self.problem
        # With the theta_0 that each moment had: the objective depends on both.
        trained = NetworkBlock.of(problem, self.config, (), self.fusion).trained
        before, after = self._aggregates(total)
        start = objective(problem, problem.fusion.finished(), before)
        rule = Divergence(start, worst_end_of(self.method, linear=False))
        return rule.at_the_end(objective(problem, trained.fusion, after))

    def aggregate(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """The aggregate of all training samples at the end, given the sum of all parts."""
        return np.asarray(self._aggregates(total)[1])

    def _aggregates(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """Those of all training samples, at the start and at the end."""
        # Two aggregates, of the start and of the end, one after the other.
        return total.ravel()[: 2 * self._size].reshape(2, self.problem.samples, -1)

    @property
    def _size(self) -> int:
        """The numbers of an aggregate of all training samples."""
        return self.problem.samples * self.problem.outputs

    def metrics(self, aggregate: NDArray[np.float64]) -> dict[str, float]:
        """All metrics on the training samples."""
        return self._measured("train", self.problem.common.labels.cpu().numpy(), aggregate)

    def held_out_metrics(self, total: NDArray[np.float64]) -> dict[str, float]:
        """All metrics on the held-out samples, given the sum of all parts; none if it has no
        outputs for them."""
        outputs = held_out_of(total.ravel(), 2 * self._size)
        if outputs is None:
            return {}
        return self._measured("test", self.held_out, outputs.reshape(-1, self.problem.outputs))

    def own_metrics(self, total: NDArray[np.float64]) -> dict[str, float]:
        """Metrics on the labels of the table, where others see other ones."""
        own = self.own_labels(self.taken.training)
        if not own.size:
            return {}

        classes = self.problem.common.classes or ()
        labels = self._known(counted(own, classes))
        found = self._measured("train", labels, self.aggregate(total))
        outputs = held_out_of(total.ravel(), 2 * self._size)
        apart = self.own_labels(self.taken.held_out)
        if outputs is not None and apart.size:
            z = outputs.reshape(-1, self.problem.outputs)
            found |= self._measured("test", self._known(counted(apart, classes)), z)
        return found

    def _measured(
        self, part: str, labels: NDArray[Any], aggregate: NDArray[np.float64]
    ) -> dict[str, float]:
        trained = NetworkBlock.of(self.problem, self.config, (), self.fusion).trained
        classes = self.problem.common.classes
        outputs = split_outputs(
            trained.fused(torch.as_tensor(aggregate, dtype=torch.float32)), labels, classes
        )
        return all_metrics(len(classes or ()), outputs.has_probabilities).measured(part, outputs)

    def _held_out_labels(self, taken: Drawn) -> NDArray[Any]:
        """The labels of the held-out samples, as numbers; none at parties that do not hold them."""
        labels: NDArray[Any] = np.empty(0)
        if self.own.labels is not None:
            labels = self.held_labels(taken.held_out)
        with advised():
            return self._known(labels)

    def _known(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Labels as metrics use them: values, or numbers of classes."""
        classes = self.problem.common.classes
        if classes is None:
            return encode(labels, None).numpy()
        return class_numbers(labels, classes)

    def _check_fusion_code(self, digest: Any) -> None:
        """Check that the label holder has the same fusion module: every party computes the loss
        with it."""
        own = fusion_code(self.config, self.bundle.code)
        is_digest = isinstance(digest, str) and len(digest) == SHA256 and digest.isalnum()
        if digest is not None and not is_digest:
            raise WireError(FUSION_CODE, "is no checksum")
        if digest != own:
            there = digest if is_digest else "another one"
            raise ConfigError(
                f"model.fusion: the file with the fusion module has sha256 {own} at "
                f"{self.config.name}, but {there} at {self.config.labels.held_by}. It must be the "
                "same for all: put the fusion module into a file of its own, and give all parties "
                "the same file."
            )

    def keep(
        self,
        folder: Path,
        reliable: ReliableParty,
        watch: Watch,
        notes: Sequence[str],
        unjudged: str,
    ) -> Summary:
        """Write the network and a summary into the run folder."""
        summary = summary_of(
            folder, self.config, self.method, self.costs, reliable, watch, notes, unjudged
        )
        columns: tuple[str, ...] = ()
        preparation = None
        if self.own_network is not None:
            columns = self.own_network.columns
            preparation = self.own_network.preparation
        block = NetworkBlock.of(self.problem, self.config, columns, self.fusion, preparation)
        return keep_block(folder, summary, block, (WEIGHTS,))

    @property
    def awaits_final_module(self) -> bool:
        """Whether the final theta_0 is unknown."""
        return self.fusion is None

    def restore(self, folder: Path) -> None:
        """Read the final theta_0 from the block in the run folder, if it is there."""
        if self.fusion is None and (folder / WEIGHTS).exists():
            block = read_network_block(self.config, self.bundle.code, folder)
            if block.knows_fusion:
                self.fusion = module_to_bytes(block.trained.fusion)

    def final_module(self) -> bytes | None:
        """The final theta_0, for the other parties, which have older ones from tokens."""
        self.fusion = fusion_to_bytes(self.problem)
        return self.fusion

    def accept_final_module(self, module: bytes) -> bool:
        """Keep the final theta_0 from the party that ended the training; the first one counts."""
        # Decoded once, which checks it, before it is kept.
        NetworkBlock.of(self.problem, self.config, (), module)
        known = self.fusion
        self.fusion = self.fusion or module
        return known is None


def _width(name: str, answer: bytes) -> int:
    # Twenty digits are more than any width has.
    width = read_json(answer[:20])
    if not is_whole(width, 1, WIDEST):
        raise DataError(
            f"{name} did not report the output width of its network: is it of the same version of "
            f"mtcd?"
        )
    return width


def _check_widths(widths: Any, parties: int) -> None:
    """Refuse widths that the label holder sends, if no networks of so many parties have them."""
    # Before any memory is taken by them.
    if not are_whole(widths, 1, WIDEST):
        raise WireError("widths", "are not those of networks")
    if len(widths) != parties:
        raise WireError("widths", "are not one for every party")
