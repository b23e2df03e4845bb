"""What kinds of models and methods say about a training, and how they are found.

Each kind of model has a function from a :class:`Request` to an :class:`Inspection`, and a method may
have one from its :class:`Setting` to its :class:`MethodFacts`. They stand beside what they are
about, and the ``feature.py`` there names them, by the class of the model or method, in the group
``mtcd.inspections``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast, get_args

from mtcd.core import features
from mtcd.core.terminal.findings import TheoryFinding
from mtcd.methods.method import Method
from mtcd.network.changes import describe_changes
from mtcd.network.spectrum import facts as spectral_facts
from mtcd.network.topology import Network
from mtcd.protocol.ledger.costs import Per, Sizes
from mtcd.theory.stepsize import Smoothness
from mtcd.training.kinds import Request

GROUP = "mtcd.inspections"


@dataclass(frozen=True)
class Inspection:
    """The result of :func:`inspect`: what a training would be.

    ``print(found)`` shows it as text.

    Parameters
    ----------
    facts : mapping
        All facts as plain values, which JSON has: ``facts["cost_per_iteration"]``,
        ``facts["theory"]`` and so on.
    rows : mapping
        The facts as text, by title.
    holdings : mapping
        What each client holds, as text.
    network : Network
        The network.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=50, features=8, clients=4)
    >>> found = mtcd.inspect(data, mtcd.Glm("ridge", l2=1.0), "path", mtcd.STCD())
    >>> list(found.facts["clients"]), len(found.network.clients)
    (['client_0', 'client_1', 'client_2', 'client_3'], 4)
    """

    facts: Mapping[str, Any]
    rows: Mapping[str, str]
    holdings: Mapping[str, str]
    network: Network

    def __repr__(self) -> str:
        return f"Inspection({self.facts['method']}, {self.network.size} clients)"

    def __str__(self) -> str:
        # titles in a column: text that is read in a terminal
        width = max(map(len, self.rows))
        return "\n".join(f"{title:{width}}  {text}" for title, text in self.rows.items())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user."""
        return tuple(self.facts["notes"])

    def with_notes(self, notes: Sequence[str]) -> Inspection:
        """The same, with these notes first."""
        return replace(self, facts={**self.facts, "notes": [*notes, *self.notes]})


@dataclass(frozen=True)
class Setting:
    """Where a method is to train.

    Parameters
    ----------
    asked
        What the user asks for, complete.
    samples
        The number of samples.
    outputs
        The numbers of a representation per sample.
    smoothness
        The smoothness of the objective; None where the theorems do not cover the model.
    """

    asked: Request
    samples: int
    outputs: int
    smoothness: Smoothness | None = None


@dataclass(frozen=True)
class MethodFacts:
    """What a method says of itself.

    Parameters
    ----------
    sizes
        The sizes of its messages.
    token_floats
        The numbers in a token, or in whatever it sends in place of one.
    tokens
        How many tokens there are; 0 where there are none.
    findings
        What is known in theory.
    facts
        Further facts, as plain values.
    rows
        The further facts as text.
    """

    sizes: Sizes
    token_floats: int
    tokens: int = 0
    findings: Sequence[TheoryFinding] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)


InspectModel = Callable[[Request], Inspection]
InspectMethod = Callable[[Any, Setting], MethodFacts]


def method_facts(method: Method, setting: Setting) -> MethodFacts:
    """What a method says of itself; most have nothing special to say."""
    # found by the class: a method of somebody's own has nothing special to say
    own = features.of_class(GROUP, type(method))
    if own is None:
        return plain_facts(method, setting)
    return cast(InspectMethod, own)(method, setting)


def plain_facts(method: Method, setting: Setting) -> MethodFacts:
    """The sizes of the messages."""
    asked = setting.asked
    sizes = method.messages(asked.network, asked.seed, setting.samples, setting.outputs).sizes
    # without tokens, what the server sends to a client is in the place of one
    return MethodFacts(sizes, int(sizes.downlink))


def network_facts(network: Network) -> dict[str, Any]:
    """The properties of a network, and how it changes."""
    return {"network": asdict(spectral_facts(network)), "changes": describe_changes(network)}


def network_rows(found: Mapping[str, Any]) -> dict[str, str]:
    """The properties of the network as text."""
    net = found["network"]
    pieces = "connected"
    if not net["connected"]:
        pieces = f"NOT connected: {net['components']} pieces"

    # there is none between pieces; on large networks only a lower bound is computed
    diameter = f"{net['diameter']}"
    if net["diameter"] is None:
        diameter = "none"
    elif not net["diameter_exact"]:
        diameter = f"at least {diameter}"

    return {
        "network": f"{net['clients']} clients, {net['edges']:,} links, {pieces}",
        "changes": "; ".join(found["changes"]) or "none",
        "degrees": f"{net['degree_min']} to {net['degree_max']}, {net['degree_mean']:.3g} on average",
        "diameter": diameter,
        "algebraic connectivity": f"{net['algebraic_connectivity']:.4g}",
    }


def cost_facts(asked: Request, tokens: int, sizes: Sizes) -> dict[str, Any]:
    """The cost of an iteration: at the prices that are asked for, per message, and per float."""
    prices = asked.method.prices(asked.network, tokens)
    each = {}
    for per in get_args(Per):
        each[per] = prices.iteration(asked.costs.by(per), sizes)

    return {"cost_per_iteration": each[asked.costs.per], "iteration_cost_per": each}


def cost_row(found: Mapping[str, Any]) -> dict[str, str]:
    """The cost of an iteration as text."""
    each = found["iteration_cost_per"]
    text = f"{each['message']:.6g} per message, {each['float']:.6g} per float"
    return {"cost of an iteration": f"{text}, as the paper charges it"}


def theory_rows(found: Sequence[TheoryFinding]) -> dict[str, str]:
    """What is known in theory, as text."""
    return {one.title: f"{one.shown}: {one.meaning}" for one in found}
