"""A split network as the user defines it: a module per client, a fusion module, and the
aggregation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from mtcd.core.errors import ConfigError, did_you_mean, listing
from mtcd.data.dataset import VerticalDataset
from mtcd.data.vertical import VerticalData
from mtcd.models.label_noise import LabelNoise
from mtcd.models.splitnet.aggregation import check_aggregation
from mtcd.models.splitnet.client import Loss
from mtcd.models.splitnet.optimiser import MakeOptimiser
from mtcd.models.splitnet.problem import NetProblem
from mtcd.training.compute import Compute


@dataclass(frozen=True, eq=False)
class SplitModel:
    """A network for every client, and a fusion network that joins their outputs.

    f(theta) = loss(fusion(H(h_1(theta_1), ..., h_K(theta_K))), labels), the mean over samples. The
    modules themselves are not touched: training works on copies.

    Parameters
    ----------
    representations : mapping from clients to torch.nn.Module
        From a batch of a client's features to (samples, numbers).
    fusion : torch.nn.Module
        From the aggregate to the outputs.
    aggregation : 'concat', 'sum' or 'mean', default 'concat'
        H, how the representations are joined.
    loss : str or callable, optional
        'cross-entropy', 'squared', or anything that is called with outputs and labels and gives a
        mean; by default what the labels ask for.
    optimiser : callable, optional
        Makes the optimiser of the local updates, from parameters and ``lr``; plain gradient steps
        unless given.
    label_noise : LabelNoise, optional
        The noise that the labels have, for which the loss is corrected; set by
        ``Privacy(labels=...)``.

    Examples
    --------
    >>> import mtcd, numpy as np
    >>> from torch import nn
    >>> draws = np.random.default_rng(0)
    >>> bank, clinic = draws.standard_normal((2, 40, 3))
    >>> data = mtcd.VerticalDataset({"bank": bank, "clinic": clinic}, bank[:, 0] > 0)
    >>> model = mtcd.SplitModel(
    ...     representations={"bank": nn.Linear(3, 4), "clinic": nn.Linear(3, 4)},
    ...     fusion=nn.Sequential(nn.ReLU(), nn.Linear(8, 2)),
    ... )
    >>> run = mtcd.train(data, model, method=mtcd.MTCD(stepsize=0.1), stop=mtcd.Stop(iterations=4))
    >>> run.predict({"bank": bank[:2], "clinic": clinic[:2]}).shape
    (2,)
    """

    representations: Mapping[str, nn.Module]
    fusion: nn.Module
    aggregation: str = "concat"
    loss: str | Loss | None = None
    optimiser: MakeOptimiser | None = None
    label_noise: LabelNoise | None = None

    def __post_init__(self) -> None:
        check_aggregation(self.aggregation)
        if not isinstance(self.representations, Mapping) or not self.representations:
            raise ConfigError(
                "representations must be a mapping from the names of the clients to their modules."
            )
        for client, module in self.representations.items():
            if not isinstance(module, nn.Module):
                raise ConfigError(
                    f"The representation of client {client!r} must be a torch.nn.Module, not "
                    f"{module!r}."
                )
            # Parameters that nothing trains would only cost messages.
            if not any(p.requires_grad for p in module.parameters()):
                raise ConfigError(
                    f"The representation of client {client!r} has no parameters to train."
                )
        if not isinstance(self.fusion, nn.Module):
            raise ConfigError(
                f"fusion must be a torch.nn.Module (nn.Identity() for none), not {self.fusion!r}."
            )
        if self.optimiser is not None and not callable(self.optimiser):
            raise ConfigError(
                "optimiser must be called with parameters and lr: give a class of torch.optim."
            )

    def __repr__(self) -> str:
        return f"SplitModel({len(self.representations):,} client(s): {self.describe()})"

    def problem(
        self, data: VerticalDataset | VerticalData, compute: Compute, seed: int
    ) -> NetProblem:
        """This model on this data, checked and ready to train."""
        # Columns of a table are samples of one dimension.
        samples = VerticalDataset.from_table(data) if isinstance(data, VerticalData) else data
        missing = [client for client in samples.clients if client not in self.representations]
        unknown = [client for client in self.representations if client not in samples.clients]
        if missing:
            raise ConfigError(
                f"There is no representation for client {missing[0]!r}: give every client a module."
            )
        if unknown:
            hint = did_you_mean(unknown[0], samples.clients)
            raise ConfigError(
                f"There is a representation for {unknown[0]!r}, but no features of such a client; "
                f"{hint}"
            )
        return NetProblem(self, samples, compute, seed)

    def describe(self) -> str:
        """A short description of the model."""
        nets = dict.fromkeys(type(module).__name__ for module in self.representations.values())
        return f"{listing(list(nets))} -> {self.aggregation} -> {type(self.fusion).__name__}"
