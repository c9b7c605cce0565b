"""ONNX's own inference of one operator's shapes, where no rule exists."""

from collections.abc import Mapping

import onnx
from onnx import helper, numpy_helper
from onnx.checker import ValidationError
from onnx.defs import SchemaError, get_schema
from onnx.shape_inference import InferenceError, infer_node_outputs

from hw.scheduler.graph.importers.onnx_input_shapes import stated_extents
from hw.scheduler.graph.importers.rules.call import Array, Shape

#: Its exceptions for wrong or missing attributes and operands.
_REFUSALS = (
    InferenceError, ValidationError, SchemaError, ValueError, RuntimeError, LookupError, ArithmeticError,
)  # fmt: skip


def infer(
    node: onnx.NodeProto,
    versions: Mapping[str, int],
    types: Mapping[str, int],
    shapes: Mapping[str, Shape],
    constants: Mapping[str, Array | None],
) -> list[list[int | None] | None]:
    """Infer the extents of a node's results, None where one is open; ValueError when ONNX refuses it."""
    given = [name for name in node.input if name]
    values = {name: value for name in given if (value := constants.get(name)) is not None}
    try:
        found = infer_node_outputs(
            get_schema(node.op_type, versions[node.domain], node.domain),
            node,
            {name: helper.make_tensor_type_proto(types[name], shapes.get(name)) for name in given},
            {name: numpy_helper.from_array(value, name) for name, value in values.items()},
            opset_imports=[helper.make_opsetid(*each) for each in versions.items()],
        )
    except _REFUSALS as error:
        raise ValueError(str(error)) from error
    return [stated_extents(found[name], {}) if name in found else None for name in node.output]
