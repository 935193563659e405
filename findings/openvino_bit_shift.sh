#!/usr/bin/env bash
# OpenVINO 2026.4.0: BitShift of ONNX rounds unsigned bytes to the nearest number, and wider words are signed 32 bits.
#
# Each row shifts to the right; onnxruntime 1.32.0, NumPy and ONNX's reference evaluator agree on "exact":
#
#   uint8    1>>1  3>>1  5>>1  7>>1   exact  0 1 2 3                     OpenVINO  0 2 2 4  (x / 2**k, halves to even)
#   uint8    200<<1 (to the left)     exact  144                         OpenVINO  255 (saturated)
#   uint32   2**31 >> 30              exact  2                           OpenVINO  4294967294
#   uint64   2**31 >> 30, 2**40 >> 8  exact  2 4294967296                OpenVINO  18446744073709551614 0
#
# A good guess is that a valid model either gives exact integers or is refused, as types without a kernel are. OpenVINO
# reads BitShift as Divide by Power, in float32 for bytes and in int32 for wider types, whatever
# INFERENCE_PRECISION_HINT says, and gives no warning. Whoever unpacks bits inside a model meets it: networks of games
# played more than half of their moves wrongly. Cast to float, Mul by a power of two and Floor are exact for bytes.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openvino==2026.4.0 onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import helper


def shifted(kind, direction, numbers, places):
    """Return the results of NumPy, onnxruntime and OpenVINO."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    x, k, y = (helper.make_tensor_value_info(name, number, ["n"]) for name in "xky")
    graph = helper.make_graph([helper.make_node("BitShift", ["x", "k"], ["y"], direction=direction)], "g", [x, k], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    model = made.SerializeToString()
    given = {"x": np.array(numbers, kind), "k": np.array(places, kind)}
    by_numpy = given["x"] >> given["k"] if direction == "RIGHT" else given["x"] << given["k"]
    by_onnxruntime = onnxruntime.InferenceSession(model).run(None, given)[0]
    core = openvino.Core()
    exactly = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
    by_openvino = core.compile_model(core.read_model(model), "CPU", exactly)(given)[0]
    return [each.tolist() for each in (by_numpy, by_onnxruntime, by_openvino)]


CASES = {
    (np.uint8, "RIGHT", (1, 3, 5, 7), (1, 1, 1, 1)): [0, 2, 2, 4],
    (np.uint8, "LEFT", (200,), (1,)): [255],
    (np.uint32, "RIGHT", (2**31,), (30,)): [4294967294],
    (np.uint64, "RIGHT", (2**31, 2**40), (30, 8)): [18446744073709551614, 0],
}
changed = False
for case, seen in CASES.items():
    exact, by_onnxruntime, by_openvino = shifted(*case)
    print(f"{case[0].__name__:7} {case[1]:6} exact {exact}, onnxruntime {by_onnxruntime}, OpenVINO {by_openvino}")
    changed |= by_onnxruntime != exact or by_openvino != seen
raise SystemExit(changed)
PYTHON
