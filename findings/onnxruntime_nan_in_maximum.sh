#!/usr/bin/env bash
# onnxruntime 1.32.0: whether a maximum of NaN and numbers is NaN depends on where the NaN is and on the operator.
#
# One NaN at place p of four zeros, on the CPU:
#
#   p                       0      1      2      3
#   ReduceMax, ReduceMin    nan    0      0      0
#   MaxPool, GlobalMaxPool  0      0      0      nan
#   Max (elementwise)       nan in its column, on either side
#   Relu                    nan
#   Unique of [1, nan, 2]   1, 2
#   Unique of [nan, 1, 2]   nan alone: both numbers are lost
#
# A good guess is one rule for all: NaN, as in NumPy, PyTorch and most of ONNX's evaluator, or numbers only, as C's
# fmax. Lengths of 4 to 1,000, rows and columns give the same. So a value that is not a number passes through the maximum
# of a network's outputs, and a comparison of two maxima does not show it; and Unique, which orders by <, holds every
# number for equal to a NaN that came first. Whoever checks or post-processes values inside a model meets it: look for NaN
# with IsNaN.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

nan = np.nan


def results(operator, shape, *values, opset=18, **attributes):
    """Return the results of onnxruntime and of the reference evaluator, of this shape."""
    names = [f"x{k}" for k in range(len(values))]
    given = {name: np.array(value, np.float32) for name, value in zip(names, values)}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in given.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    graph = helper.make_graph([helper.make_node(operator, names, ["y"], **attributes)], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [each.run(None, given)[0].ravel().tolist() for each in (session, ReferenceEvaluator(model))]


def by_place(operator, shape=(), **attributes):
    """Return both results for a NaN at each of the four places."""
    found = []
    for place in range(4):
        values = np.zeros(4, np.float32)
        values[place] = nan
        if "Pool" in operator:
            values = values.reshape(1, 1, 4)
        found.append(results(operator, shape, values, **attributes))
    runtime, reference = zip(*found)
    return [value for each in runtime for value in each], [value for each in reference for value in each]


CASES = {
    "ReduceMax": (by_place("ReduceMax", axes=[0], keepdims=0, opset=13), [nan, 0, 0, 0]),
    "ReduceMin": (by_place("ReduceMin", axes=[0], keepdims=0, opset=13), [nan, 0, 0, 0]),
    "MaxPool": (by_place("MaxPool", (1, 1, 1), kernel_shape=[4]), [0, 0, 0, nan]),
    "GlobalMaxPool": (by_place("GlobalMaxPool", (1, 1, 1)), [0, 0, 0, nan]),
    "Max": (results("Max", [3], [nan, 1, 2], [1, nan, 1]), [nan, nan, 2]),
    "Relu": (results("Relu", [1], [nan]), [nan]),
    "Unique of [1, nan, 2]": (results("Unique", ["n"], [1, nan, 2]), [1, 2]),
    "Unique of [nan, 1, 2]": (results("Unique", ["n"], [nan, 1, 2]), [nan]),
}
changed = False
for name, ((runtime, reference), seen) in CASES.items():
    print(f"{name:22} onnxruntime {runtime}, reference {reference}")
    changed |= not np.array_equal(runtime, seen, equal_nan=True)
raise SystemExit(changed)
PYTHON
