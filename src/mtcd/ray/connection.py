"""The connection to Ray, of the engine and of workers: joins a cluster, or starts Ray on this
machine."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.core.optional import find

AUTO, LOCAL = "auto", "local"
CONNECT_SECONDS = 5.0
ADDRESS = "RAY_ADDRESS"  # the variable that names a cluster, for all programs that use Ray
ENVIRONMENT = {
    # Ray gives its workers the niceness 15: beside other work on this machine, a training would
    # hardly run
    "RAY_worker_niceness": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray's announced default; avoids its warning
    "RAY_USAGE_STATS_ENABLED": "0",
}
# not log_to_driver, which writes to stdout: actors report their warnings themselves
QUIET = {"logging_level": logging.ERROR, "log_to_driver": False, "configure_logging": False}


def connect(address: str, key: str, here: Mapping[str, Any] | None = None) -> bool:
    """Connect this process to Ray; returns False if it was connected before, and so must not be
    disconnected.

    'auto' joins the cluster of RAY_ADDRESS, or the one that ``ray start`` has begun on this
    machine; without one, Ray is started here. It does not join a Ray that another process has
    started for itself, which ends with that process. 'local' always starts Ray, with the options
    ``here``; it ends with the connection. ``key`` names the setting that holds the address, in
    errors.
    """
    ray = find("ray")
    _errors_to_stderr(find("ray._private.worker"))
    if ray.is_initialized():
        return False

    # before ray.init, which starts processes that inherit it; what the user has set stays
    logging.getLogger("ray").setLevel(logging.ERROR)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)

    joined = None
    if address == AUTO:
        joined = _running()
    elif address != LOCAL:
        joined = _checked(address, key)
    if joined is None:
        _start(ray, here or {})
    else:
        _join(ray, joined, key)
    return True


def _running() -> str | None:
    """The address of the cluster that 'auto' joins, if there is one."""
    named = os.environ.get(ADDRESS)
    if named == LOCAL:
        return None
    if named:
        return _checked(named, ADDRESS)

    written = find("ray._private.services").find_bootstrap_address(None)
    if not written or not _answers(written):  # the file is left behind when a cluster is killed
        return None
    # a token of this user, as ray.init(address="auto") does
    with suppress(ImportError, AttributeError):
        setup = find("ray._private.authentication.authentication_token_setup")
        setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
    return str(written)


def _checked(address: str, key: str) -> str:
    """The address; an error if nothing listens there, for which Ray would wait more than a
    minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"{key} is 'auto', 'local' or 'host:port', but is {address!r}.")
    if not _answers(address):
        raise MtcdError(_nothing_at(address, key))
    return address


def _answers(address: str) -> bool:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        # Ray's own attempt takes more than a minute, and says less
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        return True
    except (OSError, OverflowError, ValueError):
        return False


def _nothing_at(address: str, key: str) -> str:
    return (
        f"{key}: there is no Ray cluster at {address}. Start one with 'ray start --head', check "
        "the address and port, or use 'local' to start Ray on this machine."
    )


def _join(ray: Any, address: str, key: str) -> None:
    try:
        ray.init(address=address, namespace="mtcd", **QUIET)
    except ConnectionError:
        raise MtcdError(_nothing_at(address, key)) from None
    except RuntimeError as error:
        said = str(error).strip()
        # Version or version: Ray words it differently for Ray and for Python
        if "ersion" in said:
            raise MtcdError(
                f"{key}: the Ray cluster at {address} has another version of Ray or Python than "
                f"this process: install the same ones everywhere. Ray says: {said}"
            ) from None
        raise MtcdError(f"{key}: the Ray cluster at {address} cannot be joined: {said}") from None
    except ValueError as error:
        raise ConfigError(
            f"{key}: {address!r} is not 'auto', 'local' or 'host:port' ({error})."
        ) from None


def _start(ray: Any, options: Mapping[str, Any]) -> None:
    """Start Ray on this machine, for this process alone: it listens on the loopback interface."""
    try:
        ray.init(
            address=LOCAL,
            namespace="mtcd",
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            **QUIET,
            **options,
        )
    except (RuntimeError, ValueError, OSError, TimeoutError) as error:
        raise MtcdError(
            f"Ray cannot be started on this machine: {first_line(error)}. Look into "
            "/tmp/ray/session_latest/logs, and whether /tmp and /dev/shm have space left."
        ) from None


def _errors_to_stderr(worker: Any) -> None:
    """Ray prints messages about dead nodes to stdout, whatever it is told, where they would be amid
    results in JSON."""
    printed = getattr(worker, "print_to_stdstream", None)
    if printed is None or hasattr(printed, "to_stderr"):
        return

    def to_stderr(data: Mapping[str, Any], *given: Any, **named: Any) -> None:
        printed({**data, "is_err": True}, *given, **named)

    to_stderr.to_stderr = True  # type: ignore[attr-defined]
    worker.print_to_stdstream = to_stderr


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    for line in str(error).splitlines():
        if line.strip():
            return line.strip().rstrip(".")
    return type(error).__name__
