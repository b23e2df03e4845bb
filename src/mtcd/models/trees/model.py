"""Additive models: z is a constant plus the sum of the outputs of the parties' models, each of any
family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, check_known, did_you_mean
from mtcd.data.prepare.recipe import AUTO, TREES
from mtcd.models.label_noise import LabelNoise, settings_to_store
from mtcd.models.losses import LOSSES, Labels, Loss
from mtcd.models.trees.families.family import FAMILIES, Family
from mtcd.models.trees.families.trees import TreeFamily
from mtcd.models.weights import ClassWeight, check_class_weight, loss_on

SQUARED = "squared"
NAMES_OF_SQUARED = ("ridge", "linear")  # as linear models call it, by their penalty


class Additive(ABC):
    """f = sum_n w_n l(c + sum_k h_k(x_n), y_n) + sum_k r(theta_k), with h_k of any family.

    :class:`Trees` has the same family at all parties, :class:`Mixed` one for each.
    """

    loss: str
    delta: float
    quantile: float
    positive: str | float | None
    class_weight: ClassWeight | None
    label_noise: LabelNoise | None

    @abstractmethod
    def family(self, client: str) -> Family:
        """The family of a client."""

    def families(self, clients: Sequence[str]) -> tuple[Family, ...]:
        """The family of every client, in the order of the clients."""
        return tuple(self.family(client) for client in clients)

    def recipe(self, client: str) -> str:
        """The default recipe by which a client prepares its columns: in the form that its family
        takes."""
        if self.family(client).keeps_missing:
            return TREES
        return AUTO

    def recipes(self, clients: Sequence[str]) -> dict[str, str]:
        """The default recipes of all clients, by name."""
        self.families(clients)  # refuses families of clients that do not exist
        return {client: self.recipe(client) for client in clients}

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name of this kind of model in a config."""

    def _check(self) -> None:
        self.plain_loss  # noqa: B018 - refuses settings that the loss does not use
        if self.class_weight is not None:
            check_class_weight(self.class_weight)

    def _loss_class(self) -> type[Loss]:
        """The class of the loss. Linear models call the squared loss by their penalty; here there
        is one name for it."""
        if self.loss == SQUARED:
            return LOSSES["linear"]
        if self.loss in NAMES_OF_SQUARED:
            raise ConfigError(f"model.loss: no loss is called {self.loss!r}: write {SQUARED}")
        if self.loss not in LOSSES:
            known = [SQUARED, *(name for name in LOSSES if name not in NAMES_OF_SQUARED)]
            hint = did_you_mean(str(self.loss), known)
            raise ConfigError(f"model.loss: no loss is called {self.loss!r}: {hint}")
        return LOSSES[self.loss]

    @property
    def plain_loss(self) -> Loss:
        """The loss, without weights and without the constant.

        Raises
        ------
        ConfigError
            If no loss has this name, or a setting is given that the loss does not use.
        """
        kind = self._loss_class()
        # Only what the loss uses: a setting that does nothing is refused.
        settings: dict[str, Any] = {}
        for name, default, used in (
            ("delta", 1.0, kind.uses_delta),
            ("quantile", 0.5, kind.uses_quantile),
            ("positive", None, kind.uses_positive),
        ):
            if used:
                settings |= {name: getattr(self, name)}
            elif getattr(self, name) != default:
                raise ConfigError(
                    f"model.{name}: the loss {self.loss} has no use for it: leave it out."
                )
        loss = kind(**settings)
        if self.label_noise is not None:
            return self.label_noise.corrected(loss, self)
        return loss

    def weighted(
        self, labels: Labels, weights: Array | None = None
    ) -> tuple[Loss, Array, tuple[str | float, ...]]:
        """The loss on these samples.

        Parameters
        ----------
        labels : array
            The labels as given.
        weights : array, optional
            A weight for every sample. The weights of classes are multiplied with them.

        Returns
        -------
        tuple
            The loss with all weights, the labels as it takes them, and the classes: see
            ``mtcd.models.weights.loss_on``.
        """
        return loss_on(self.plain_loss, self.loss, labels, weights, self.class_weight)

    def to_json(self) -> dict[str, Any]:
        """The settings as plain values, from which ``model_from_json`` makes the model again."""
        return settings_to_store(self) | {"kind": self.kind}


@dataclass(frozen=True)
class Trees(TreeFamily, Additive):
    """Gradient-boosted trees: a visit of a token grows trees on the party's own columns.

    Trees fit the gradient at the token. They start from the constant with the lowest loss, and a
    party whose tree would not lower the loss passes the token on unchanged. Needs LightGBM: ``pip
    install '.[trees]'`` in the clone.

    Parameters
    ----------
    loss : str, default 'squared'
        'squared', 'logistic', 'multinomial', 'huber', 'quantile', 'poisson', 'squared-hinge', or
        one of a plugin.
    delta : float, default 1.0
        The residual from which the loss 'huber' is linear.
    quantile : float, default 0.5
        The quantile of the loss 'quantile'.
    positive : str or float, optional
        The positive one of two classes; the second in sorted order unless given.
    class_weight : 'balanced' or mapping, optional
        The weights of classes.
    label_noise : LabelNoise, optional
        The noise that the labels have, for which the loss is corrected; set by
        ``Privacy(labels=...)``.
    learning_rate : float, default 0.1
        Each tree is multiplied by it.
    depth : int, default 6
        The most levels of a tree; 0: any number.
    leaves : int, default 31
        The most leaves of a tree.
    l2 : float, default 1.0
        Added to the second derivatives of a leaf.
    min_samples : int, default 20
        The fewest samples of a leaf.
    columns : float, default 1.0
        The share of columns that a tree is grown on, drawn anew for every visit.
    rows : float, default 1.0
        The share of samples that a tree is grown on, drawn anew for every visit.
    adaptive : bool, default True
        Whether parties compare their gains, and grow trees where they gain most. Otherwise every
        visit grows ``method.local_updates``.
    bins : int, default 255
        The most distinct thresholds of a column.
    threads : int, default 1
        The threads of LightGBM; changes the time only.

    Examples
    --------
    >>> Trees("logistic", learning_rate=0.3).depth
    6
    """

    loss: str = field(default=SQUARED, kw_only=False)
    delta: float = 1.0
    quantile: float = 0.5
    positive: str | float | None = field(default=None, repr=False)
    class_weight: ClassWeight | None = None
    label_noise: LabelNoise | None = field(default=None, repr=False)

    kind = "trees"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()

    def family(self, client: str) -> Family:
        return self


@dataclass(frozen=True)
class Mixed(Additive):
    """A model of another family at every party.

    A family is a name, 'trees', 'linear' or 'net', or a mapping with the name as ``kind`` and
    settings, such as ``{"kind": "trees", "depth": 3}``.

    Parameters
    ----------
    loss : str, default 'squared'
        As of :class:`Trees`.
    parties : mapping from str to families
        The family of each party.
    default : family, optional
        The family of parties that are not named.
    delta : float, default 1.0
        The residual from which the loss 'huber' is linear.
    quantile : float, default 0.5
        The quantile of the loss 'quantile'.
    positive : str or float, optional
        The positive one of two classes.
    class_weight : 'balanced' or mapping, optional
        The weights of classes.
    label_noise : LabelNoise, optional
        As of :class:`Trees`.

    Examples
    --------
    >>> Mixed("logistic", {"bank": "trees", "insurer": {"kind": "linear", "l2": 0.1}}).families(["bank", "insurer"])[1]
    LinearFamily(l1=0.0, l2=0.1)
    """

    loss: str = SQUARED
    parties: Mapping[str, Any] = field(default_factory=dict)
    default: Any = None
    delta: float = 1.0
    quantile: float = 0.5
    positive: str | float | None = field(default=None, repr=False)
    class_weight: ClassWeight | None = None
    label_noise: LabelNoise | None = field(default=None, repr=False)

    kind = "mixed"

    def __post_init__(self) -> None:
        self._check()
        if not isinstance(self.parties, Mapping) or not self.parties:
            raise ConfigError(
                "model.parties: name at least one party and its family, such as {bank: trees}."
            )
        own = {name: family_of(name, given) for name, given in self.parties.items()}
        if self.default is not None:
            own["default"] = family_of("default", self.default)
        # losses without a bound on the curvature leave no step size for families other than trees
        steps = [name for name, family in own.items() if not isinstance(family, TreeFamily)]
        if steps and self.plain_loss.not_linear:
            raise ConfigError(
                f"model.loss: {self.loss} is for trees alone, as {self.plain_loss.not_linear}: "
                f"give {steps[0]!r} trees, or choose another loss."
            )

    def families(self, clients: Sequence[str]) -> tuple[Family, ...]:
        if unknown := [name for name in self.parties if name not in clients]:
            raise ConfigError(
                f"model.parties names {unknown[0]!r}, which is no party; "
                f"{did_you_mean(unknown[0], clients)}"
            )
        return super().families(clients)

    def family(self, client: str) -> Family:
        if client not in self.parties and self.default is None:
            raise ConfigError(
                f"model.parties has no family for {client!r}: add it, or give model.default."
            )
        return family_of(client, self.parties.get(client, self.default))


def family_of(party: str, given: Any) -> Family:
    """A family from its name, or from a mapping with the name as ``kind`` and its settings."""
    if isinstance(given, Family):
        # `Trees` is a family itself, which `Mixed` may be given.
        return given
    settings: dict[str, Any] = {}
    if isinstance(given, str):
        settings = {"kind": given}
    elif isinstance(given, Mapping):
        settings = dict(given)

    kind = settings.pop("kind", None)
    if not isinstance(kind, str):
        raise ConfigError(
            f"model.parties: the family of {party!r} must be a name, such as trees, or a mapping "
            f"with a kind, but is {given!r}."
        )
    family = FAMILIES[kind]
    known = [one.name for one in fields(family)]  # type: ignore[arg-type]
    for name in settings:
        problem = f"model.parties: {party!r}: {kind} has no setting {name!r};"
        check_known(name, known, problem)
    return family(**settings)


def model_from_json(stored: Mapping[str, Any]) -> Additive:
    """The model that ``Additive.to_json`` described."""
    settings = dict(stored)
    kind = settings.pop("kind")
    if kind == "trees":
        return Trees(**settings)
    return Mixed(**settings)
