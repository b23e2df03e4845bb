"""The section ``model`` of a config for split networks. PyTorch is imported when a network is
made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from mtcd.config.model_schema import ModelSection
from mtcd.config.section import Section
from mtcd.config.stop_schema import StopSection
from mtcd.core.errors import ConfigError
from mtcd.core.optional import find
from mtcd.training.compute import Compute

if TYPE_CHECKING:
    from mtcd.config.schema import Config
    from mtcd.data.dataset import VerticalDataset
    from mtcd.data.vertical import VerticalData
    from mtcd.methods.method import Method
    from mtcd.models.splitnet.model import SplitModel

EPOCHS = 10  # of mini-batches, unless a limit is given


class OptimiserSection(Section):
    """An optimiser of torch.optim by its name; other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str = "SGD"


class SplitSection(ModelSection):
    """A split network: see mtcd.SplitModel. Makers are names of built-in ones, or
    'package.module:function'."""

    kind: Literal["split"]
    """`split`: a network for every client and one that joins them"""
    code: Path | None = None
    """the folder of your functions; that of the config unless given, then the current one. Not in a
    [federation](federation.md#split-networks), where each party names its own code"""
    client: str
    """the clients' network. Built in: `mlp` (samples of any shape, taken as rows), `resnet18`
    (pictures; 3 x 3 stem, no max-pool), `mvcnn` (views). Or a function of yours,
    `package.module:function`, that makes an `nn.Module`; it may ask for `client`, `index`, `shape`
    and `clients` by name"""
    client_settings: dict[str, Any] = Field(default_factory=dict)
    """what else it is called with. `mlp`: `width` (16), `hidden` ([64]), `dropout` (0). `resnet18`:
    `width` (16).
    `mvcnn`: `width` (64)"""
    fusion: str = "linear"
    """from the aggregate to the outputs. Built in: `linear`, `mlp`. Or a function of yours, which
    may ask for `width` and `outputs`"""
    fusion_settings: dict[str, Any] = Field(default_factory=dict)
    """`mlp`: `hidden` ([64]), `dropout` (0)"""
    aggregation: str = "concat"
    """`concat`, `sum` or `mean` of what the clients' networks give; the latter two need the same
    `width` from all"""
    loss: str | None = None
    """`cross-entropy` or `squared`; what the labels ask for unless given: numbers with fractions
    are values, all else classes"""
    optimiser: OptimiserSection = OptimiserSection()
    """`{kind: SGD}` unless given: any class of `torch.optim` that needs no closure, spelt as there,
    and its settings, such as `{kind: SGD, momentum: 0.9, weight_decay: 5e-4}`. The learning rate is
    `method.stepsize`"""

    any_shape: ClassVar[bool] = True
    keeps_unfinished: ClassVar[bool] = True

    @property
    def own_networks(self) -> dict[str, str]:
        named = {"client": self.client, "fusion": self.fusion}
        return {key: name for key, name in named.items() if ":" in name}

    @property
    def code_folder(self) -> Path | None:
        return self.code

    def located(self, folder_of: Callable[[Path], Path]) -> SplitSection:
        if not self.own_networks:
            return self
        return self.model_copy(update={"code": folder_of(self.code or Path("."))})

    def check(self, config: Config) -> None:
        """Find the makers of networks, which runs code that the config names; check the device."""
        find("mtcd.models.splitnet.configured").check_split(self)
        self.compute(config)
        # Corrected for the noise once, which refuses losses that cannot be.
        if config.privacy.label_privacy is not None:
            config.privacy.label_privacy.corrected_network_loss(self.loss)
        if config.data.standardise and config.data.is_scaled:
            raise ConfigError(
                "data.standardise: pictures are normalised as they are read: leave it out."
            )

    def compute(self, config: Config) -> Compute:
        given = {} if config.compute is None else config.compute.model_dump()
        return Compute(**given)

    def stop(self, config: Config, method: Method) -> StopSection:
        """Epochs of mini-batches, where nothing is said."""
        # Mini-batches are counted in epochs; a limit of iterations would depend on the size of the
        # data.
        if method.batch is not None and config.stop == StopSection():
            return StopSection(epochs=EPOCHS)
        return config.stop

    def build(self, config: Config, data: VerticalData | VerticalDataset) -> SplitModel:
        """The networks, for the shapes and classes of this data."""
        if config.data.positive_class is not None:
            raise ConfigError(
                "data.positive is for linear models of two classes: leave it out for a split "
                "network."
            )
        make = find("mtcd.models.splitnet.configured").split_model
        model: SplitModel = make(self, data, config.seed, config.data.standardise)
        return model
