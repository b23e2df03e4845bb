"""mtcd party, mtcd server, mtcd predict: run one member of a federation with its credentials bundle."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from mtcd.config.yaml_file import read_yaml
from mtcd.core.errors import ConfigError, MtcdError, NotInstalledError
from mtcd.core.optional import find
from mtcd.data.prepare.recipe import AUTO, read_recipe
from mtcd.federation.commands.exit_codes import INVALID, SUCCESS

READY = "This party has all that the run needs of it."
NOT_READY = "This party cannot take part: mend what failed."


@dataclass(frozen=True)
class PartyOptions:
    """The options of ``mtcd party`` and ``mtcd server``."""

    bundle: Path
    data: Path | None = None
    id: str | None = None
    columns: str | None = None
    label: str | None = None
    out: Path | None = None
    quiet: bool = False
    code: Sequence[Path] = ()
    agreed: Sequence[str] = ()
    prepare: str | None = None
    weights: str | None = None
    metrics: str | None = None
    stay: float = 0.0


def run_party(options: PartyOptions, server: bool = False) -> int:
    """Take part until the run has ended; returns the exit code."""
    # A service manager ends a party with SIGTERM. It must leave the run as with Ctrl-C, with the
    # journal closed.
    signal.signal(signal.SIGTERM, interrupt)
    bundle = find("mtcd.federation.credentials.bundle").read_bundle_without_code(options.bundle)
    _refuse_other_role(options.bundle, bundle.config, server)
    out = options.out or own_run(options.bundle)
    show = None if options.quiet else typer.echo
    with ExitStack() as open_ones:
        try:
            node = _make_node(bundle, options, out, show, open_ones)
        except Exception as error:
            # all are needed until training begins: nobody is to wait for this party
            with suppress(NotInstalledError):  # without its packages nobody can be told
                find("mtcd.federation.node.refusing").refuse(bundle, out, _reasons(error), show)
            raise
        status: str = node.run()
    return 1 if status == "diverged" else 0


def _make_node(
    bundle: Any,
    options: PartyOptions,
    out: Path,
    show: Callable[[str], None] | None,
    open_ones: ExitStack,
) -> Any:
    """The node of a party that has all that it needs; otherwise an MtcdError is raised."""
    preflight = find("mtcd.federation.preflight")
    monitoring = None
    # A missing package of the metrics is reported with the other findings, not by an ImportError.
    if options.metrics is not None and not _is_missing(_more_packages(options)):
        monitoring = find("mtcd.federation.node.monitoring").Monitoring(options.metrics)
        # Before the table is read, which takes minutes: health checks start with the process.
        open_ones.enter_context(monitoring)
    given, more = _given(options), _more_packages(options)
    examined = preflight.examine(bundle, given, options.code, options.agreed, more)
    if examined.failures:
        raise _UnfitError(examined.failures)
    node = find("mtcd.federation.node.node").Node(examined.bundle, out, examined.participant, show)
    node.stay_seconds = options.stay
    if monitoring is not None:
        monitoring.watch(node)
    return node


class _UnfitError(MtcdError):
    """A party lacks what the run needs of it. ``failures`` are the findings."""

    def __init__(self, failures: Sequence[Any]) -> None:
        super().__init__(" ".join(one.sentence for one in failures))
        self.failures = failures


def _reasons(error: Exception) -> list[tuple[str, str]]:
    """Why a party cannot take part, for itself and, without anything that is private, for the
    others."""
    if isinstance(error, _UnfitError):
        return [(one.sentence, one.told) for one in error.failures]
    return [(str(error), find("mtcd.federation.node.refusal").reason_of(error))]


def check_party(options: PartyOptions, server: bool = False) -> int:
    """Show whether a party has all that its run needs, without taking part; returns the exit
    code."""
    preflight = find("mtcd.federation.preflight")
    given, unread = {}, []
    try:
        given = _given(options)
    except MtcdError as error:  # a recipe that cannot be read
        unread.append(preflight.table_failure(error))
    found = preflight.preflight(
        options.bundle, given, options.code, options.agreed, _more_packages(options)
    )
    found += [*unread, *_metrics_findings(options)]
    config = find("mtcd.federation.credentials.credentials").read_party_file(
        options.bundle, find("mtcd.federation.credentials.bundle_schema").BundleConfig
    )
    _refuse_other_role(options.bundle, config, server)
    for one in found:
        typer.echo(f"{one.level:6}  {one.requirement:12}  {one.sentence}")
    failed = sum(one.level == preflight.FAILED for one in found)
    typer.echo(NOT_READY if failed else READY)
    return INVALID if failed else SUCCESS


def _refuse_other_role(folder: Path, config: Any, server: bool) -> None:
    """Refuse the bundle of another command."""
    if config.is_operator or config.is_server != server:
        command = "mtcd party"
        if config.is_operator:
            command = "mtcd federation status"
        elif config.is_server:
            command = "mtcd server"
        raise ConfigError(f"{folder} is the bundle of {config.name}: use {command} with it.")


def _metrics_findings(options: PartyOptions) -> list[Any]:
    """Whether the address for metrics can be used, where one is given."""
    if options.metrics is None or _is_missing(_more_packages(options)):
        return []
    preflight = find("mtcd.federation.preflight")
    try:
        find("mtcd.federation.node.monitoring").Monitoring(options.metrics).close()
    except MtcdError as error:
        return [preflight.Finding(preflight.ADDRESSES, preflight.FAILED, str(error), error=error)]
    return [
        preflight.Finding(
            preflight.ADDRESSES, preflight.MET, f"Can serve metrics at {options.metrics}."
        )
    ]


def _more_packages(options: PartyOptions) -> list[str]:
    """The packages that options need, besides those of the run."""
    return [] if options.metrics is None else ["prometheus_client"]


def _is_missing(packages: list[str]) -> bool:
    preflight = find("mtcd.federation.preflight")
    return any(one.level == preflight.FAILED for one in preflight.package_findings(packages))


def own_run(bundle: Path) -> Path:
    """The run folder in a bundle. A symbolic link, which the bundle may have come with, is refused."""
    run = bundle / "run"
    # The run folder gets keys and results. A link that came with a bundle could send them anywhere.
    if run.is_symlink():
        raise ConfigError(
            f"{run} is a symbolic link: name the folder that it points to yourself (--out, or "
            "--run)."
        )
    return run


def _given(options: PartyOptions) -> dict[str, Any]:
    """The options that override the ``data`` section of the bundle."""
    columns = None
    if options.columns is not None:
        columns = [name.strip() for name in options.columns.split(",")]
    return {
        "data": options.data,
        "key": options.id,
        "columns": columns,
        "label": options.label,
        "prepare": _recipe(options.prepare),
        "weights": options.weights,
    }


def _recipe(given: str | None) -> Any:
    """What ``--prepare`` says: auto, or the content of a file; it is checked before the table is
    read."""
    if given is None or given == AUTO:
        return given
    content = read_yaml(Path(given), "recipe", "columns, default, on_unseen")
    read_recipe(content)
    return content


def interrupt(*_: Any) -> None:
    """Handle SIGTERM as Ctrl-C."""
    raise KeyboardInterrupt


@dataclass(frozen=True)
class PredictOptions:
    """The options of ``mtcd predict``."""

    bundle: Path
    data: Path | None
    id: str | None
    run: Path | None
    out: Path
    quiet: bool
    code: Sequence[Path] = ()
    agreed: Sequence[str] = ()


def predict_with_others(
    bundle: Path,
    data: Path | None,
    key: str | None,
    run: Path | None,
    out: Path,
    quiet: bool,
    code: Sequence[Path],
    agreed: Sequence[str],
) -> None:
    """Take part with a bundle, as ``mtcd predict BUNDLE`` does: see :class:`PredictOptions`."""
    predict(PredictOptions(bundle, data, key, run, out, quiet, code, agreed))


def predict(options: PredictOptions) -> None:
    """Take part until the party that learns the predictions has them."""
    signal.signal(signal.SIGTERM, interrupt)
    bundle = find("mtcd.federation.credentials.bundle").read_bundle(
        options.bundle, options.code, options.agreed
    )
    samples, config = find("mtcd.federation.node.predicting"), bundle.config
    if config.is_operator:
        raise ConfigError(
            f"{options.bundle} is the operator's bundle, which cannot predict: use the bundle of a "
            "party."
        )
    run = options.run or own_run(options.bundle)
    if config.seen_by == config.name:
        # Now, and not after the parties have computed for minutes.
        samples.check_out(options.out)
    new = decide = None
    if not config.is_server:
        if options.data is None:
            raise ConfigError(
                "Which new samples? Give this party's own columns of them, with --data new.csv."
            )
        new = samples.new_samples(bundle, run, options.data, options.id)
    elif config.seen_by != config.name:
        # A server that does not learn the predictions has no part in them: parties send to that
        # one.
        raise samples.no_server(config)
    else:
        decide = samples.server_decides(bundle, run)
    # Blocks of different runs do not form a model: the parties compare this id.
    number = samples.run_number(run)
    show = None if options.quiet else typer.echo
    predictor = find("mtcd.federation.node.predicting").Predictor
    predictor(
        bundle,
        new,
        samples.writer(config, options.out),
        decide,
        show,
        run / "predict.jsonl",
        number,
    ).run()
