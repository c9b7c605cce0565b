"""A quantized model in onnxruntime, without any optimization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

from hw.network.graph.network import Network


def stored_values(
    model: bytes, network: Network, feeds: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[np.int8]]:
    """Run a model and return each value of the network that it names, as the network stores it."""
    proto = onnx.load_model_from_string(model)
    named = {name for node in proto.graph.node for name in node.output}
    wanted = [name for name in network.values if name in named]
    del proto.graph.output[:]
    for name in wanted:
        kind = TensorProto.UINT8 if network.values[name].unsigned else TensorProto.INT8
        proto.graph.output.append(helper.make_tensor_value_info(name, kind, None))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    found = {}
    for name, array in zip(wanted, session.run(wanted, dict(feeds)), strict=True):
        value = network.values[name]
        image = array[0].transpose(1, 2, 0) if array.ndim == 4 else array
        found[name] = (image.astype(int) - 128 * value.unsigned).reshape(value.shape).astype(np.int8)
    return found
