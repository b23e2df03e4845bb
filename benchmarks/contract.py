"""The import contract of import-linter: core below, features above it and side by side.

A contract of layers cannot say it, as most features lie in a folder of the layer that they extend
(``mtcd.models.trees`` in ``mtcd.models``). This one reads ``[tool.architecture]`` in
``pyproject.toml``, and asks the graph of import-linter, which is built apart from that of
``benchmarks.seams``.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output

from benchmarks.seams import NEUTRAL, Architecture, Import, kind


class CoreBelowFeatures(Contract):
    """No import leads from the core to a feature, up in the core, or from one feature to
    another."""

    type_name = "core_below_features"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Look at every import between two modules.

        Parameters
        ----------
        graph
            All modules and their imports.
        verbose
            Whether import-linter was asked to tell more; there is no more to tell.
        """
        architecture = Architecture.read()
        broken = []
        for source in sorted(graph.modules):
            for target in sorted(graph.find_modules_directly_imported_by(source)):
                what = judged(source, target, architecture)
                if what != "allowed":
                    lines = graph.get_import_details(importer=source, imported=target)
                    broken.append((source, target, what, lines[0]["line_number"]))

        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name the imports that are against the contract.

        Parameters
        ----------
        check
            What ``check`` returned.
        """
        for source, target, what, line in check.metadata["broken"]:
            output.print_error(f"{source} imports {target} (line {line}): {what}", bold=False)


def judged(source: str, target: str, architecture: Architecture) -> str:
    """What one import is: see ``benchmarks.seams.kind``.

    Parameters
    ----------
    source
        The module that imports.
    target
        The module that is imported.
    architecture
        The layers and features.
    """
    if source in NEUTRAL or target in NEUTRAL:
        return "allowed"

    of, to = architecture.unit(source), architecture.unit(target)
    if of == to:
        return "allowed"
    return kind(Import(source, target, of, to), architecture)
