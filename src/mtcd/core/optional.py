"""Parts of the library with optional dependencies: imported on use, with an error that says what to
install."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from mtcd.core.errors import NotInstalledError

EXTRAS = {  # the package that may be missing, and the extra that brings it
    "torch": "torch",
    "safetensors": "torch",
    "cryptography": "federation",
    "msgpack": "federation",
    "private_set_intersection": "federation",
    "sklearn": "sklearn",
    "google": "federation",  # protobuf, which private_set_intersection depends on
    "skops": "prepare",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "pandas": "pandas",
    "prometheus_client": "metrics",
    "bokeh": "report",
    "ray": "ray",
    "pymetis": "ray",
    "tenseal": "sealed",
    "zstandard": "sealed",
    "lightgbm": "trees",
}
USERS = {
    "prepare": "Transformers of scikit-learn that are kept in a run folder",
    "torch": "Split neural networks",
    "sklearn": "Estimators of scikit-learn",
    "federation": "Federations and masked aggregation",
    "metrics": "Metrics of a party",
    "tensorboard": "Logs for TensorBoard",
    "mlflow": "Logs for MLflow",
    "onnx": "Files for ONNX",
    "pandas": "Data frames of pandas",
    "report": "Reports for the browser",
    "ray": "Trainings on Ray",
    "sealed": "Sealed trainings",
    "trees": "Boosted trees",
}


def install(extra: str) -> str:
    """The command that installs an extra. The package is on no index, so it is run in a clone."""
    return f"pip install '.[{extra}]'"


INSTALL_WHERE = "in a clone of the mtcd repository"


def find(module: str) -> ModuleType:
    """A module of this library, or an optional package.

    Parameters
    ----------
    module
        Its full name.

    Returns
    -------
    ModuleType
        The imported module.

    Raises
    ------
    NotInstalledError
        If it needs an optional package that is not installed: the text says how to install it.

    Examples
    --------
    >>> find("mtcd.core.seeding").__name__
    'mtcd.core.seeding'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # The top package: a part that is missing inside an installed one is named with its path.
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS:  # a defect of this library, or a module that is not there
            raise
        extra = EXTRAS[missing]
        raise NotInstalledError(
            f"{USERS[extra]} need {missing}, which is not installed. To install it, "
            f"{INSTALL_WHERE}: {install(extra)}"
        ) from None
