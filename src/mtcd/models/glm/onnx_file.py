"""A linear model as an ONNX graph: the columns as given go in, scaling is folded into the
coefficients.

Inputs are float32; the graph computes in double precision, so that columns with large means lose no
digits.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mtcd.core.errors import ConfigError
from mtcd.core.version import VERSION
from mtcd.models.glm.trained import TrainedModel

OPSET = 17
IR_VERSION = 8  # of that opset: older runtimes read it
CLASSES = {"logistic": True, "multinomial": True, "squared-hinge": False}
"""Models of classes, and whether they give probabilities."""
VALUES = ("ridge", "linear", "huber")


def linear_onnx(trained: TrainedModel) -> bytes:
    """The model as a file: input ``X`` with a column for each of ``run.column_names``.

    Output ``decision``; of classes also ``probabilities``, if the model has some, and ``label``,
    the number of the class in the list of ``classes`` of the metadata.
    """
    kind = trained.model.kind
    if kind not in (*CLASSES, *VALUES):
        raise ConfigError(
            f"Only built-in models are exported to ONNX, and {kind!r} is not one of them."
        )
    width, samples = len(trained.column_names), "samples"
    several = trained.coefficients.ndim == 2
    each: list[str | int | None] = [samples]
    per_class: list[str | int | None] = [samples, len(trained.classes)]
    decision = per_class if several else each
    outputs = [helper.make_tensor_value_info("decision", TensorProto.FLOAT, decision)]
    # Features are float32 for runtimes, but the sum runs in float64: with large means the
    # prediction is a small difference of large numbers.
    nodes = [
        helper.make_node("Cast", ["X"], ["x"], to=TensorProto.DOUBLE),
        helper.make_node("MatMul", ["x", "coefficients"], ["products"]),
        helper.make_node("Add", ["products", "intercept"], ["z"]),
        helper.make_node("Cast", ["z"], ["decision"], to=TensorProto.FLOAT),
    ]
    constants = {
        "coefficients": trained.coefficients,
        "intercept": np.asarray(trained.intercept, dtype=float),
    }
    if kind in CLASSES:
        nodes += _label(several)
        outputs.append(helper.make_tensor_value_info("label", TensorProto.INT64, each))
    if CLASSES.get(kind):
        nodes += _softmax() if several else _sigmoids()
        outputs.append(helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, per_class))
    # Runtimes warn of constants that no node uses.
    used = {name for node in nodes for name in node.input}
    constants |= {name: value for name, value in NUMBERS.items() if name in used}
    graph = helper.make_graph(
        nodes,
        "mtcd",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [samples, width])],
        outputs,
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    about = {"kind": kind, "columns": trained.column_names, "classes": trained.classes}
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    return finished(model, about)


NUMBERS: dict[str, Any] = {"zero": np.zeros(()), "axis": np.array([1], dtype=np.int64)}


def _label(several: bool) -> list[onnx.NodeProto]:
    if several:
        return [helper.make_node("ArgMax", ["z"], ["label"], axis=1, keepdims=0)]
    return [
        helper.make_node("Greater", ["z", "zero"], ["positive"]),
        helper.make_node("Cast", ["positive"], ["label"], to=TensorProto.INT64),
    ]


def _softmax() -> list[onnx.NodeProto]:
    return [
        helper.make_node("Softmax", ["z"], ["shares"], axis=1),
        helper.make_node("Cast", ["shares"], ["probabilities"], to=TensorProto.FLOAT),
    ]


def _sigmoids() -> list[onnx.NodeProto]:
    """The sigmoids of -z and z, side by side."""
    return [
        helper.make_node("Unsqueeze", ["z", "axis"], ["column"]),
        helper.make_node("Neg", ["column"], ["mirrored"]),
        helper.make_node("Concat", ["mirrored", "column"], ["sides"], axis=1),
        helper.make_node("Sigmoid", ["sides"], ["shares"]),
        helper.make_node("Cast", ["shares"], ["probabilities"], to=TensorProto.FLOAT),
    ]


def finished(model: onnx.ModelProto, about: dict[str, Any]) -> bytes:
    """A checked model as bytes, with facts about it in its metadata, as JSON under the key
    'mtcd'."""
    model.producer_name, model.producer_version = "mtcd", VERSION
    helper.set_model_props(model, {"mtcd": json.dumps(about)})
    # Here, and not where the file is loaded: an invalid graph is an error of this package.
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())
