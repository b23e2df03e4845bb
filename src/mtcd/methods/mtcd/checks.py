"""What the settings of MTCD and STCD must be, and what to change where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError, check_known
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.protocol.model import Problem
from mtcd.protocol.transports.transport import DEFAULT, TRANSPORTS

if TYPE_CHECKING:
    from mtcd.methods.mtcd.mtcd import MTCD

GRADIENT, MAJORISE, NEWTON = "gradient", "majorise", "newton"
SOLVERS = (GRADIENT, MAJORISE, NEWTON)


def check_settings(method: MTCD) -> None:
    """Reject settings that do not go together.

    Raises
    ------
    ConfigError
        With the setting, and what to change.
    """
    _check_tokens(method)
    _check_sync(method)
    _check_local_solver(method)
    _check_acceleration(method)
    _check_lone_token(method)
    _check_transport(method)


def _check_tokens(method: MTCD) -> None:
    for name in ("tokens", "hops", "fusion_updates"):
        value = getattr(method, name)
        if value is not None:
            check_whole(f"method.{name}", value)

    if not isinstance(method.first_pass, bool):
        raise ConfigError(f"method.first_pass is true or false, but is {method.first_pass!r}.")


def _check_sync(method: MTCD) -> None:
    rule = RULES[method.combine_rule]
    # The weights are chosen by comparing values of f, which do not follow from a batch.
    if rule.server_chooses and (method.batch is not None or method.hops is None):
        raise ConfigError(
            f"method.combine: {method.combine_rule} needs mtcd and the full batch, to compute f "
            "from the tokens: leave batch out, or choose another rule."
        )
    if not _are_clusters(method.clusters):
        raise ConfigError(
            f"method.clusters is 'auto', 'balanced' or a list of lists of clients, but is "
            f"{method.clusters!r}."
        )


def _are_clusters(given: object) -> bool:
    """Whether this may be ``method.clusters``: None, 'auto', 'balanced', or lists of
    clients."""
    if given is None or isinstance(given, str):
        return given in (None, "auto", "balanced")
    if not isinstance(given, Sequence):
        return False
    return all(isinstance(one, Sequence) and not isinstance(one, str) for one in given)


def _check_local_solver(method: MTCD) -> None:
    problem = f"method.local_solver: unknown solver {method.local_solver!r}:"
    check_known(method.local_solver, SOLVERS, problem)

    # The bound is of f on all samples; on another batch it would be another function. And a block
    # that is solved on a few samples fits these alone.
    if method.local_solver != GRADIENT and method.batch is not None:
        raise ConfigError(
            f"method.local_solver: {method.local_solver} needs the full batch: leave batch out."
        )


def check_solver(method: MTCD, problem: Problem) -> None:
    """Reject a penalty that the local solver cannot handle."""
    if method.local_solver == NEWTON and problem.nonsmooth:
        raise ConfigError(
            "method.local_solver: newton needs a smooth penalty: use gradient or majorise with l1."
        )


def _check_acceleration(method: MTCD) -> None:
    if method.depth is not None:
        check_whole("method.depth", method.depth)

    kind = None
    if method.acceleration is not None:
        kind = ACCELERATIONS[method.acceleration]
    if method.adaptive and not (kind and kind.adapts):
        raise ConfigError(
            "method.adaptive is for acceleration: conjugate, which chooses its own step sizes."
        )
    if kind is not None:
        kind.check_settings(method)


def _check_lone_token(method: MTCD) -> None:
    if method.hops is not None:
        return

    # The paper's STCD is one token for ever: whatever needs a sync has no place in it.
    several = method.tokens not in (None, 1) or method.clusters is not None
    if several or method.batch is not None:
        raise ConfigError(
            "stcd has one token, no clusters and the full batch: use mtcd for anything else."
        )
    if method.schedule is not None:
        raise ConfigError("method.schedule changes the step size from sync to sync: stcd has none.")


def _check_transport(method: MTCD) -> None:
    if method.transport == DEFAULT:
        return

    keeps = TRANSPORTS[method.transport].keeps_differences
    # Both take differences of tokens, in which what a transport has changed would count as progress.
    chosen = RULES[method.combine_rule].server_chooses
    if chosen or (method.acceleration is not None and not keeps):
        raise ConfigError(
            f"method.transport: {method.transport} changes tokens on their way, but acceleration "
            "and combine: optimal compute with differences of tokens. Set transport: delta32 with "
            f"acceleration, and transport: {DEFAULT} with combine: optimal."
        )
