"""Reading an ONNX file, with early errors for damaged files and other formats."""

from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from hw.errors import InputError
from hw.scheduler.graph.importers.onnx_bodies import graphs_within
from hw.scheduler.graph.importers.onnx_constants import dense_values

_POINTER = b"version https://git-lfs.github.com/spec/"


def read_model(source: Path | bytes, where: str) -> onnx.ModelProto:
    """Read a model; parameters in other files stay there.

    It normalizes the domain of ONNX's own operators and makes sparse parameters dense.  InputError for a file
    that is no ONNX model, or that is damaged.
    """
    try:
        content = source.read_bytes() if isinstance(source, Path) else source
        model = onnx.load_model_from_string(content)
    except OSError as error:
        raise InputError("model", where, f"a readable file ({error.strerror})") from error
    except DecodeError as error:
        legal = "an ONNX model, and this is none or is damaged"
        if content.startswith(_POINTER):
            legal = "an ONNX model, and this is Git LFS' pointer to one: fetch it by `git lfs pull`"
        raise InputError("model", where, legal) from error
    if not model.graph.node:
        raise InputError("model", where, "an ONNX model with at least one operator")
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    graphs = [model.graph, *graphs_within(nodes)]
    nodes += [node for graph in graphs[1:] for node in graph.node]
    # Protobuf returns text that is not UTF-8 as bytes.
    if not all(isinstance(text, str) for text in _texts(model, graphs, nodes)):
        raise InputError("model", where, "an ONNX model, and this is damaged: a name is no text")
    named = [*nodes, *model.opset_import, *model.functions]
    for each in (*named, *(use for function in model.functions for use in function.opset_import)):
        if each.domain == "ai.onnx":
            each.domain = ""
    for graph in graphs:
        graph.initializer.extend(dense_values(tensor, where) for tensor in graph.sparse_initializer)
    return model


def _texts(
    model: onnx.ModelProto, graphs: list[onnx.GraphProto], nodes: list[onnx.NodeProto]
) -> Iterator[object]:
    for use in model.opset_import:
        yield use.domain
    for graph in graphs:
        yield graph.name
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield value.name
            for dimension in value.type.tensor_type.shape.dim:
                yield dimension.dim_param
        for tensor in graph.initializer:
            yield tensor.name
            for entry in tensor.external_data:
                yield from (entry.key, entry.value)
        for sparse in graph.sparse_initializer:
            yield sparse.values.name
    for function in model.functions:
        yield from (function.name, function.domain, *function.input, *function.output, *function.attribute)
        for use in function.opset_import:
            yield use.domain
        for attribute in function.attribute_proto:
            yield attribute.name
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        for attribute in node.attribute:
            yield from (attribute.name, attribute.ref_attr_name)
