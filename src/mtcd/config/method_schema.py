"""The section ``method`` of a config, whose keys depend on its kind; and the one that is taken where
a config has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, SerializeAsAny

from mtcd.config.keys import has_depth, keys_of, section_of
from mtcd.config.section import Alternatives, Number, Section, Whole
from mtcd.core.errors import ConfigError
from mtcd.methods.default import default_method
from mtcd.methods.method import METHODS, Method
from mtcd.privacy.settings import Privacy
from mtcd.training.kinds import kind_of


class ScheduleSection(Section):
    """How the step size changes from epoch to epoch: see mtcd.Schedule."""

    kind: str = "step"
    """`step`: times `factor` once `every` so many epochs. `exponential`: times `factor` per `every`
    epochs, a little in each. `cosine`: down to `factor` after `every` epochs, where it stays"""
    every: Whole = 20
    """epochs"""
    factor: Number = 0.5
    """by which the step size is multiplied"""
    warmup: Whole = 0
    """so many epochs at the start go up in equal steps"""


def _method_kind(kind: str) -> str:
    try:
        METHODS[kind]
    except ConfigError as error:
        raise ValueError(str(error).removeprefix("method.kind: ")) from None
    return kind


class MethodSection(Alternatives):
    """How it is trained: see mtcd.MTCD, mtcd.STCD, mtcd.SVFL, mtcd.DCPA and mtcd.TreeCG.

    A method with other settings has a section with these too: see ``section_of``.
    """

    kind: Annotated[str, AfterValidator(_method_kind)] = "mtcd"
    """`mtcd`, `stcd` (one token, no server), `svfl` (client-server), `dcpa` (all neighbours talk in
    every iteration, no server) or `tree-cg` (conjugate gradients on a spanning tree, no server;
    smooth objectives only, see
    [beyond.md](beyond.md#an-anchor-conjugate-gradients-on-a-spanning-tree)), whose only other key
    is `degree`"""
    tokens: Whole | None = None
    """Γ; 1, or the number of clusters, unless given"""
    hops: Whole = 16
    """S, hops of each token between syncs"""
    local_updates: Whole = 1
    """Q, gradient steps per visit"""
    stepsize: Number | Literal["auto"] = "auto"
    """η (μ_w in dcpa), or `auto` (not for split networks). With `acceleration: conjugate`, `auto`
    lets the first tour choose step size and number of local updates; `local_updates` then has no
    effect"""
    batch: Whole | None = None
    """samples in a mini-batch; all of them unless given"""
    combine: str | None = None
    """how copies are combined at a sync. `average`: 1/Γ each, tokens may cross; `cluster`: a token
    per cluster;
    `visitors`: over the tokens that came by (ours); `optimal`: the server finds the weights with
    which f is least (ours; see [when to prefer it](beyond.md#optimal-sync)); `memory`: a token per
    cluster, a weight for each cluster and each of the last 20 syncs (ours; `walk: tour`, see
    [beyond.md](beyond.md#a-weight-for-each-cluster-with-memory))"""
    walk: str = "lazy"
    """where a token goes next. `lazy`: uniform over the neighbours and the client itself (the
    paper's). Ours:
    `tour`: round and round one closed walk through all clients, as short as is found;
    `random-tour`: around a spanning tree, its branches in a fresh random order each time;
    `non-backtracking`: not back where it came from;
    `metropolis`: equally often at every client"""
    clusters: Literal["auto", "balanced"] | list[list[str | int]] | None = None
    """lists of clients, `auto` to find them, or `balanced` to find them and even out the length of
    their tours (for `walk: tour`); tokens stay inside"""
    start: str | int | dict[str, Number] | list[str | int | dict[str, Number]] | None = None
    """where tokens start: a client, weights `{a: 1, b: 3}`, or a list with one of these per token;
    uniform unless given"""
    acceleration: str | None = None
    """with `walk: tour`: each tour (stcd) or sync (mtcd; a token per cluster, `hops` no less than
    the longest tour) starts from a mix of the last ones (ours, see
    [beyond.md](beyond.md#accelerated-tours)); in svfl each
    [round](beyond.md#accelerated-rounds). `conjugate`: the best mix, two updates of every
    client a tour, at its first and its last visit; not with l1. `momentum`: further along the last
    way; for l1 too. `anderson`: extrapolation, undone where it does not help. `twin` (stcd, not with
    l1): fewer messages than `conjugate`, each twice as long, and nothing to tune (see
    [beyond.md](beyond.md#twin-tours))"""
    depth: Whole | None = None
    """M of `conjugate` and `anderson`: how many tours they look back (5; `conjugate` with
    `stepsize: auto` chooses 10 or 20). Of `twin`: how many directions are kept, two of each tour
    (80, and at most a quarter of the samples)"""
    degree: Whole = 4
    """of tree-cg: the most neighbours of a client in the tree, 2 or more. Where the network has no
    such tree, as a star, a client may have more; a note says so"""
    dual_stepsize: Number | None = None
    """μ_y; the same as `stepsize` unless given"""
    consensus_stepsize: Number | None = None
    """μ_x of variant A; 1/(4 μ_y · largest degree) unless given"""
    variant: Literal["B", "A"] = "B"
    """`B` or `A`: two reconstructions of the method, see `methods/dcpa/dcpa.py`"""
    schedule: ScheduleSection | None = None
    """how η changes by epoch, a pass over all samples (with the full batch, a sync or a round)"""
    fusion_updates: Whole | None = None
    """of split networks: steps of θ_0 at the server per iteration (S·Q; Q in svfl)"""
    fusion_client: str | int | None = None
    """of split networks: where θ_0, which travels with the token, is updated: a client (the first
    unless given), or `each`"""
    first_pass: bool = True
    """of split networks: `true`: before training, the token goes through all clients once, along
    links, and each adds its representation, so that the first token is true to θ^0, as in the
    paper; these messages are on the ledger. `false`: the token starts at 0, and holds nothing of a
    client before its first visit"""
    transport: str = "float64"
    """the form in which aggregates travel: `float64`, or for half the bytes `float32`, or with
    `acceleration` `delta32`. Parties compute in double precision. `float32` rounds every aggregate
    on its way: on a ridge problem (N = 500, 10 clients in a cycle) it reached a gap of 1e-9 after
    the same 225 hops. `delta32` sends the change since the last message over a link, so that what
    is rounded becomes small with the changes (see
    [beyond.md](beyond.md#half-the-bytes)). Neither with `combine: optimal`; split networks always
    send float32. [CONTRIBUTING.md](../CONTRIBUTING.md) says how to add another"""
    local_solver: str = "gradient"
    """of linear models. `gradient`: the Q local updates are gradient steps on f, as in the paper.
    `majorise` (ours): they are steps on the quadratic upper bound of f at the token that arrived,
    which the block's Gram matrix gives in closed form; a visit then takes one gradient and two
    products with the block, whatever Q, and f never rises for step sizes up to 1/L_k. The optimum
    is the same. For the squared loss both are the same thing; for others a training takes some more
    hops (0 to 50% in our trials with conjugate tours) and a half to a sixth of the computing time.
    `newton` (ours): each of the Q updates is up to three Newton steps on f of the block, halved
    until f does not rise, which all but minimise it; `stepsize` then has no effect, and l1 is
    refused. Neither with `batch`; in svfl only with `acceleration`"""

    @classmethod
    def chosen(cls, given: Mapping[str, Any]) -> type[Section]:
        return section_for(given.get("kind"))


AnyMethodSection = SerializeAsAny[MethodSection]


def section_for(kind: object) -> type[MethodSection]:
    """The section of a method by its name; the general one where no method has it."""
    if not isinstance(kind, str) or kind not in METHODS:
        return MethodSection
    try:
        return cast(type[MethodSection], section_of(kind, MethodSection))
    except ConfigError as error:
        raise ValueError(str(error)) from None


def method_section(method: Method) -> MethodSection:
    """The section of a config that makes this method."""
    settings = {}
    for name in keys_of(method.kind):
        if hasattr(method, name):
            settings[name] = getattr(method, name)

    if method.acceleration is not None and method.chooses_steps:
        # in a method it is a number by now, which belongs to this data
        settings |= {"stepsize": "auto"}
    if not has_depth(settings.get("acceleration")):  # a note would say that it has no effect
        settings.pop("depth", None)
    return section_for(method.kind).model_validate({"kind": method.kind, **settings})


def default_section(
    model: Section,
    privacy: Privacy | None = None,
    connected: bool = True,
    server: bool | None = None,
) -> MethodSection:
    """The section of the default method for the section of a model: see ``default_method``.

    The section alone decides, as a model cannot be made before the code of a loss of one's own is
    found.
    """
    return method_section(default_method(kind_of(model), model, connected, privacy, server))
