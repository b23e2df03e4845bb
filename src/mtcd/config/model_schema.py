"""The section ``model`` of a config: each kind of model has a class of its own for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import SerializeAsAny

from mtcd.config.section import Alternatives, Section, registered
from mtcd.core.errors import ConfigError

if TYPE_CHECKING:  # the schema imports this module
    from mtcd.config.schema import Config
    from mtcd.config.stop_schema import StopSection
    from mtcd.data.dataset import VerticalDataset
    from mtcd.data.vertical import VerticalData
    from mtcd.methods.method import Method
    from mtcd.training.compute import Compute


class ModelSection(Alternatives):
    """The model that is trained.

    A kind of model names its own class of section in its ``feature.py``, under ``config_sections``
    and ``model``: by its kind, and by a key that only it has. The class says here what a config has
    to know of the kind. It is imported where a config asks for the kind; what it imports itself
    when it is asked may need optional packages.

    Examples
    --------
    >>> type(ModelSection.model_validate({"kind": "ridge"})).__name__
    'GlmSection'
    """

    if TYPE_CHECKING:
        # declared by each class, at its place: a field of this one would be the first of all tables
        kind: str

    any_shape: ClassVar[bool] = False
    """Whether samples may have any shape. Other kinds are trained on tables."""
    train_standardises: ClassVar[bool] = False
    """Whether ``train`` scales the columns. Other kinds do it themselves, or need no scaling."""
    keeps_unfinished: ClassVar[bool] = False
    """Whether studies keep checkpoints of interrupted trainings: those of other kinds are short."""

    @classmethod
    def chosen(cls, given: Mapping[str, Any]) -> type[Section]:
        section = registered("model", given)
        if section is None:
            raise ValueError("this installation of mtcd has no kind of model")
        return section

    @property
    def own_parts(self) -> dict[str, str]:
        """The parts that may be code of the user's own, by their keys below ``model``."""
        return {"kind": self.kind}

    @property
    def own_networks(self) -> dict[str, str]:
        """The networks that are not built in, by their keys: making them runs the user's code."""
        return {}

    @property
    def code_folder(self) -> Path | None:
        """The folder of the user's networks, if this kind has one of its own."""
        return None

    def located(self, folder_of: Any) -> ModelSection:
        """This section with absolute paths.

        Parameters
        ----------
        folder_of
            The function that makes a path absolute.
        """
        return self

    def check(self, config: Config) -> None:
        """Reject what is invalid for all data, here and in sections that this kind has no use for.

        Parameters
        ----------
        config
            The whole config.
        """
        raise NotImplementedError

    def refuse_compute(self, config: Config) -> None:
        """Reject a section ``compute``, of kinds that do not run networks."""
        if config.compute is not None:
            raise ConfigError("compute is for split networks (model.kind: split): leave it out.")

    def compute(self, config: Config) -> Compute | None:
        """Where and how it runs; None for kinds that do not run networks."""
        return None

    def stop(self, config: Config, method: Method) -> StopSection:
        """When the training ends: what the config says, or what is usual for this kind.

        Parameters
        ----------
        config
            The whole config.
        method
            The method, with its privacy.
        """
        return config.stop

    def recipes(self, clients: Sequence[str]) -> dict[str, str] | None:
        """How each client prepares its columns where the config does not say; None: not at all."""
        return None

    def build(self, config: Config, data: VerticalData | VerticalDataset) -> Any:
        """The model for this data.

        Parameters
        ----------
        config
            The whole config.
        data
            The samples: networks depend on their shapes and classes.
        """
        raise NotImplementedError

    def resolved(self) -> dict[str, Any]:
        """The keys that are written into the run folder beside the given ones."""
        return {}


AnyModelSection = SerializeAsAny[ModelSection]


def default_model_section() -> ModelSection:
    """The section of the model that is trained where a config has none."""
    return ModelSection.model_validate({})
