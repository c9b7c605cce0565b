"""Convolutions by onnxruntime: deformable ones in float64, plain ones on integers."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper


def deform_conv(x, w, offset, mask, attributes):
    """DeformConv-19 of float64 ``x`` [C, H, W]: [Cout, oH, oW]."""
    feeds = {"x": x[None], "w": w, "offset": offset[None]}
    names = ["x", "w", "offset"]
    if mask is not None:
        feeds["mask"] = mask[None]
        names += ["", "mask"]
    feeds = {name: tensor.astype(np.float64) for name, tensor in feeds.items()}
    changes = common(attributes) | {"offset_group": attributes.offset_group}
    return run("DeformConv", names, feeds, TensorProto.DOUBLE, TensorProto.DOUBLE, changes)


def conv_integer(x, w, zero, attributes):
    """ConvInteger-10 of int8 ``x`` [C, H, W] and ``w``, as uint8, whose zero points are 128 more."""
    shifted = [(tensor.astype(np.int16) + 128).astype(np.uint8) for tensor in (x[None], w)]
    zeros = [np.array(zero + 128, np.uint8), np.array(128, np.uint8)]
    feeds = dict(zip(("x", "w", "x_zero", "w_zero"), (*shifted, *zeros), strict=True))
    return run("ConvInteger", list(feeds), feeds, TensorProto.UINT8, TensorProto.INT32, common(attributes))


def common(attributes):
    return {
        "strides": attributes.strides,
        "dilations": attributes.dilations,
        "pads": attributes.pads,
        "group": attributes.group,
    }


def run(op, names, feeds, kind, result, attributes):
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attributes)],
        "one",
        [helper.make_tensor_value_info(name, kind, tensor.shape) for name, tensor in feeds.items()],
        [helper.make_tensor_value_info("y", result, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    model.ir_version = 10
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)[0][0]
