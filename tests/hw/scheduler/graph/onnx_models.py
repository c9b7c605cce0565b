"""Small ONNX models, and their row dependences, measured by changing one row at a time."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from hw.scheduler.graph.fuse import fuse_elementwise
from hw.scheduler.graph.importers.onnx_model import import_onnx

#: The usual input.
IMAGE = {"x": (1, 3, 8, 8)}


def node(op, *inputs, outputs=("y",), **attributes):
    return helper.make_node(op, list(inputs), list(outputs), **attributes)


def model(nodes, inputs, constants=None, *, outputs=("y",), opset=20, runtime=False):
    """Make a model with float inputs of these shapes."""
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid("com.microsoft", 1)] * runtime
    made = helper.make_model(graph, opset_imports=opsets)
    made.ir_version = 10
    return made.SerializeToString()


def weights(*shape):
    """Parameters without a zero, so that every one of them counts."""
    return np.random.default_rng(1).uniform(0.5, 1.5, shape).astype(np.float32)


def small():
    """A convolution, a rectifier, a view and a product."""
    nodes = [
        node("Conv", "x", "w", "b", outputs=["a"], name="conv", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", "a", outputs=["r"], name="relu"),
        node("Flatten", "r", outputs=["f"]),
        node("MatMul", "f", "m", name="dense"),
    ]
    return model(nodes, IMAGE, {"w": weights(4, 3, 3, 3), "b": weights(4), "m": weights(64, 10)})


def dependencies(content, name, axis, output_axis):
    """Return [input row, output row] -> whether the output row depends on the input row."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(2)
    feeds = {
        given.name: random.uniform(1, 2, given.shape).astype(np.float32) for given in session.get_inputs()
    }
    before = session.run(None, feeds)[0]
    table = []
    for row in range(feeds[name].shape[axis]):
        changed = feeds[name].copy()
        place = (slice(None),) * axis + (row,)
        # Larger than all others and distinct, so that maxima and differences change.
        changed[place] += random.uniform(1, 2, changed[place].shape).astype(np.float32)
        after = session.run(None, {**feeds, name: changed})[0]
        others = tuple(other for other in range(after.ndim) if other != output_axis)
        table.append(np.any(after != before, axis=others))
    return np.array(table)


def check_accesses(content, *, exact=(), whole=(), fused=False):
    """Compare the accesses of a model of one operator (once ``fused``) with its measured dependences.

    Every row that counts must be within the access.  For the inputs in ``exact`` the access must be no wider
    than from the first to the last such row, too; those in ``whole`` have none.
    """
    graph = fuse_elementwise(import_onnx(content)) if fused else import_onnx(content)
    (operator,) = graph.operators
    for name in exact:
        assert name in operator.accesses, f"{name} is not accessed by rows"
    for name in whole:
        assert name not in operator.accesses
    for name, access in operator.accesses.items():
        extent = graph.tensor[name].shape[access.axis]
        table = dependencies(content, name, access.axis, access.output_axis)
        assert table.shape[0] == extent
        for row in range(table.shape[1]):
            needed = np.flatnonzero(table[:, row])
            if needed.size == 0:
                continue
            first, last = access.rows(row, row + 1, extent)
            hull = (int(needed[0]), int(needed[-1]) + 1)
            assert first <= hull[0], (name, row, hull, (first, last))
            assert hull[1] <= last, (name, row, hull, (first, last))
            if name in exact:
                assert (first, last) == hull, (name, row, hull, (first, last))
    return graph


def light(name):
    """A model that the onnx package carries."""
    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"


def run(nodes, feeds, constants, outputs, *, opset):
    """Run nodes in onnxruntime without optimization; return the outputs by name."""
    graph = helper.make_graph(
        nodes,
        "network",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), list(value.shape)
            )
            for name, value in feeds.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(graph, opset_imports=imports)
    made.ir_version = 10
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return dict(zip(outputs, session.run(None, feeds), strict=True))
