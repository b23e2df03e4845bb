"""Kinds of models and modes of privacy in a federation: what differs between them at one party.

Each says in its ``feature.py`` which part it brings: a kind of model in the group
``mtcd.party_kinds``, by the class of its section ``model``; a mode of privacy in the group
``mtcd.party_privacy``, by its name. Nothing else of a federation names one, and one that is not
used is not imported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.privacy import settings
from mtcd.privacy.settings import LabelSource

if TYPE_CHECKING:  # these import this module
    from mtcd.config.schema import ModelSection, PrivacySection, StopSection
    from mtcd.data.prepare import ColumnPreparation
    from mtcd.data.vertical import VerticalData
    from mtcd.federation.credentials.bundle import Bundle
    from mtcd.federation.credentials.bundle_schema import BundleConfig
    from mtcd.federation.participant.participant import Participant
    from mtcd.federation.participant.table import PartyTable
    from mtcd.federation.schema import Federation
    from mtcd.methods.method import Method
    from mtcd.models.predicted import Columns
    from mtcd.network.topology import Network
    from mtcd.privacy.settings import LabelPrivacy

KINDS, PRIVACY = "mtcd.party_kinds", "mtcd.party_privacy"
REHEARSED_SAMPLES = 20
Decide: TypeAlias = "Callable[[NDArray[np.float64], Any], Columns]"
"""From the sum of all parts and the classes to the predictions, with probabilities or scores."""


class Block(Protocol):
    """The trained block of one party."""

    @property
    def party(self) -> str:
        """The name of the party whose block it is."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of a table, before preparation."""

    @property
    def preparation(self) -> ColumnPreparation | None:
        """What makes values of the columns as given, if these are prepared."""

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite: if not, the training diverged."""

    @property
    def width(self) -> int:
        """The numbers per sample in a sum over all parties."""

    def contribution(self, table: PartyTable) -> NDArray[Any]:
        """This party's part of the sum for new samples: (rows, width)."""

    def decided(self, sums: NDArray[np.float64]) -> Columns:
        """The predictions for the sum of all parts, with probabilities or scores."""

    @property
    def told_classes(self) -> Sequence[Any] | None:
        """The classes of the labels, for a server that predicts; None if that knows them."""

    def files(self) -> dict[str, bytes]:
        """The block as files, by name."""


class PartyKind(ABC):
    """What a kind of model brings to one party of a federation. An implementation has no state."""

    block_files: tuple[str, ...] = ()
    """The files of a block in the run folder, which a run that has diverged does not leave."""
    no_weights: str = ""
    """Why samples have no weights, and what to do; "" if they may have."""
    no_plateau: str = ""
    """Why no party can apply a plateau rule; "" if one can."""
    labels_at_server: str = ""
    """What takes the labels at a server, whatever the method; "" if nothing does."""

    @abstractmethod
    def participant(self, bundle: Bundle, table: PartyTable | None) -> Participant:
        """The participant of a bundle with its table; the server has none."""

    @abstractmethod
    def rehearse(
        self, federation: Federation, method: Method, settled: Any, network: Network
    ) -> None:
        """Make the parties on a few synthetic samples, which refuses all settings that ``mtcd
        train`` refuses.

        Parameters
        ----------
        federation
            The federation file; its method, stop rule and model are to be checked together.
        method
            The method of the file.
        settled
            The same with a step size, and a batch that fits ``REHEARSED_SAMPLES``.
        network
            The network of the parties.
        """

    @abstractmethod
    def block(self, bundle: Bundle, run: Path) -> Block:
        """The trained block in a run folder; an MtcdError is raised if it is of another party."""

    @abstractmethod
    def server_decides(self, bundle: Bundle, run: Path) -> Decide:
        """The decision function of a server that learns the predictions."""

    def packages(self, config: BundleConfig) -> tuple[str, ...]:
        """The packages that a run needs at the owner of a bundle, as they are imported."""
        return ()

    def default_stop(self) -> StopSection | None:
        """The stop rule of a federation file that has none; None for that of all kinds."""
        return None

    def recipe(self, config: BundleConfig) -> Any:
        """How a party prepares its columns, unless its bundle says; None as they are."""
        return None

    def own_networks(self, model: Any) -> dict[str, str]:
        """The networks of the model that are not built in, by the keys of its section."""
        return {}

    def built_in_only(self, model: ModelSection) -> ModelSection:
        """The section with such networks replaced by built-in ones, to check all else without
        running their code."""
        return model

    def gap(self, model: Any, data: VerticalData, blocks: Mapping[str, Any]) -> float:
        """(f - f*)/f* of the model that the blocks of all parties form, given all data: for
        demonstrations, as no party has either.

        Raises
        ------
        ConfigError
            The optimum is not known for this kind of model.
        """
        raise ConfigError("The optimum of this kind of model is not known.")


class PartyPrivacy:
    """What a mode of privacy changes at one party of a federation. This one changes nothing."""

    shares_labels = True
    """Whether parties get the labels, which computing the loss takes."""

    def participant(self, kind: PartyKind, bundle: Bundle, table: PartyTable | None) -> Participant:
        """The participant of a bundle, for this kind of model."""
        return kind.participant(bundle, table)

    def packages(self) -> tuple[str, ...]:
        """The packages that a run needs at all members."""
        return ()

    def check_labels(self, federation: Federation, method: Method) -> None:
        """Refuse what would tell labels or scores to others; not called where all may know the
        labels."""

    def check_plateau(self, federation: Federation, instead: str) -> None:
        """Refuse a plateau rule; ``instead`` says what to write. Not called where all may know the
        labels."""


NO_PRIVACY = PartyPrivacy()


def party_kind(model: Any) -> PartyKind:
    """The kind of model of a section ``model``.

    Raises
    ------
    ConfigError
        The model cannot be trained in a federation.
    """
    homes = features.parts(KINDS)
    # By name, and along the base classes: the class itself would have to be imported, which is what
    # `features.py` avoids; a section may inherit from the one that is registered.
    for section in type(model).__mro__:
        if section.__name__ in homes:
            found: Any = features.load(homes[section.__name__])
            return found  # type: ignore[no-any-return]

    raise ConfigError("model.kind: this kind of model is not for federations.")


def party_privacy(privacy: PrivacySection | None) -> PartyPrivacy:
    """What the mode of privacy of a section ``privacy`` changes; nothing without one.

    Raises
    ------
    ConfigError
        The mode is not known here: without it, the party would tell others what it is to keep.
    """
    if privacy is None or privacy.mode == settings.OPEN:
        return NO_PRIVACY

    homes = features.parts(PRIVACY)
    if privacy.mode not in homes:
        raise ConfigError(f"privacy.mode: {privacy.mode} is not for federations.")

    found: Any = features.load(homes[privacy.mode])
    return found  # type: ignore[no-any-return]


def participant_of(bundle: Bundle, table: PartyTable | None) -> Participant:
    """The participant of a credentials bundle with its table, which was read; the server has
    none."""
    config = bundle.config
    # Before anything of the participant is made: nothing in it, not even a step size, may be
    # computed from the true labels.
    if config.label_privacy is not None and table is not None:
        table = _released(config.label_privacy, bundle, table)
    return party_privacy(config.privacy).participant(party_kind(config.model), bundle, table)


def _released(privacy: LabelPrivacy, bundle: Bundle, table: PartyTable) -> PartyTable:
    """The table with the labels that others may see; that of another party as it is."""
    if table.labels is None:
        return table

    source = LabelSource(table.path, bundle.folder, bundle.config.name)
    labels = privacy.released(table.labels, source)
    notes = (*table.notes, *privacy.notes(source))
    return replace(table, labels=labels, true_labels=table.labels, notes=notes)


def make_participant(bundle: Bundle, given: dict[str, Any]) -> Participant:
    """The participant of a bundle; ``given`` overrides the ``data`` section of the bundle."""
    # Imported here, as `table` imports this module.
    from mtcd.federation.participant.table import own_table

    config = bundle.config
    table = None if config.is_server else own_table(config, bundle.folder, **given)
    return participant_of(bundle, table)
