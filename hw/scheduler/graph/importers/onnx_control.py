"""Functions, branches and loops, inlined at their calls."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import onnx
from onnx import TensorProto, helper

from hw.scheduler.graph.importers.onnx_bodies import Frame, bodies, live_nodes, names_read
from hw.scheduler.graph.importers.rules.call import Array, Shape

#: Operators with bodies.
CONTROL = frozenset(("If", "Loop", "Scan"))
#: Most operators that branches, loops and functions may add to a model.
MOST = 10_000


class ModelWalker(Protocol):
    """The interface of `hw.scheduler.graph.importers.onnx_learned.Learned` for bodies."""

    shapes: dict[str, Shape]
    constants: dict[str, Array | None]
    lost: set[str]
    expanded: int

    def refuse(self, field: str, value: Any, legal: str) -> Exception:
        """Return an error of the model."""

    def ask(self, name: str) -> None:
        """Note that an input's shape is needed."""

    def learn(self, name: str, element: int, extents: Sequence[int | None] | None) -> None:
        """Learn a tensor's type and shape."""

    def lose(self, names: Sequence[str]) -> None:
        """Mark tensors as unknown."""

    def name_unsupported(self, node: onnx.NodeProto, name: str, why: str = "") -> None:
        """Report an operator that cannot be imported."""

    def add_parameters(self, graph: onnx.GraphProto, frame: Frame) -> None:
        """Learn the parameters of a body."""

    def walk(self, nodes: Sequence[onnx.NodeProto], frame: Frame) -> None:
        """Learn the results of the nodes of a body."""

    def visit(self, node: onnx.NodeProto, frame: Frame) -> None:
        """Learn the results of one more operator."""


def call_function(
    learned: ModelWalker, call: onnx.NodeProto, function: onnx.FunctionProto, frame: Frame
) -> None:
    """Walk a function of the model at its call."""
    name = f"{function.domain}.{function.name}"
    if name in frame.functions:
        circle = " -> ".join([*frame.functions[frame.functions.index(name) :], name])
        raise learned.refuse("functions of the model", circle, "none that calls itself")
    known = {each.name: each for each in (*function.attribute_proto, *call.attribute)}
    versions = {use.domain: use.version for use in function.opset_import}
    inner = Frame(
        versions={**frame.versions, **versions},
        prefix=_prefix(learned, call),
        attributes=known,
        functions=(*frame.functions, name),
        stated={value.name: value.type for value in function.value_info},
    )
    for index, each in enumerate(function.input):
        inner.names[each] = call.input[index] if index < len(call.input) else ""
    _walk_body(learned, call, function.node, list(function.output), call.output, inner)


def expand(learned: ModelWalker, node: onnx.NodeProto, made: onnx.NodeProto, frame: Frame) -> None:
    """Walk the branch of an If or the iterations of a Loop, or report it as unsupported."""
    graphs = list(bodies(node))
    decides = [name for name in made.input[:2] if name in learned.constants and name in learned.lost]
    if decides:  # an open dimension, already reported: open inputs of the bodies are reported, too
        for name in names_read(node):
            learned.ask(frame.resolve(name))
        learned.lose(made.output)
    elif node.op_type == "If" and len(graphs) == 2 and len(node.input) == 1:
        _branch(learned, node, made, frame)
    elif node.op_type == "Loop" and len(graphs) == 1 and len(node.input) >= 2:
        _loop(learned, node, made, graphs[0], frame)
    else:
        learned.name_unsupported(made, node.op_type)


def _decided(learned: ModelWalker, node: onnx.NodeProto, name: str, what: str) -> Array | None:
    """Return a deciding value; without one, report the node or mark its results as unknown."""
    value = learned.constants.get(name)
    if value is not None and value.size == 1:
        return value
    if name in learned.constants and name in learned.lost:
        learned.lose(node.output)
    elif name in learned.constants:
        learned.name_unsupported(node, node.op_type, f"the value of its {what} cannot be computed on import")
    else:
        why = f"its {what} is known only when the network runs: export the network without it"
        learned.name_unsupported(node, node.op_type, why)
    return None


def _branch(learned: ModelWalker, node: onnx.NodeProto, made: onnx.NodeProto, frame: Frame) -> None:
    condition = _decided(learned, made, made.input[0], "condition")
    if condition is None:
        return
    name = "then_branch" if condition.reshape(-1)[0] else "else_branch"
    graph = next((each.g for each in node.attribute if each.name == name), None)
    if graph is None or len(graph.output) != len(node.output):
        count = "none" if graph is None else len(graph.output)
        raise learned.refuse(f"outputs of the {name} of If", count, f"{len(node.output)}, those of the node")
    inner = _inside(learned, made, graph, frame)
    _walk_body(learned, made, graph.node, [each.name for each in graph.output], made.output, inner)


def _loop(
    learned: ModelWalker, node: onnx.NodeProto, made: onnx.NodeProto, graph: onnx.GraphProto, frame: Frame
) -> None:
    count, going = made.input[:2]
    carried = list(made.input[2:])
    trips: int | None = None
    if count:
        value = _decided(learned, made, count, "number of iterations")
        if value is None:
            return
        trips = int(value.reshape(-1)[0])
    if going:
        value = _decided(learned, made, going, "condition")
        if value is None:
            return
        trips = trips if value.reshape(-1)[0] else 0
    if len(graph.input) != 2 + len(carried) or len(graph.output) != 1 + len(node.output):
        counts = (len(graph.input), len(graph.output))
        legal = f"{(2 + len(carried), 1 + len(node.output))}, as the node has them"
        raise learned.refuse("inputs and outputs of the body of Loop", counts, legal)
    scanned: list[list[str]] = [[] for _ in node.output[len(carried) :]]
    step = 0
    while trips is None or step < trips:
        inner = _inside(learned, made, graph, frame)
        learned.expanded += 1 + len(graph.node)
        if learned.expanded > MOST:
            learned.name_unsupported(made, "Loop", f"it has more than {MOST} operators when it is unrolled")
            return
        for each, value in ((graph.input[0].name, np.array(step)), (graph.input[1].name, np.array(True))):
            inner.names[each] = inner.own(each)
            learned.constants[inner.own(each)] = value
            learned.learn(inner.own(each), helper.np_dtype_to_tensor_dtype(value.dtype), ())
        inner.names.update(zip((each.name for each in graph.input[2:]), carried, strict=True))
        outputs = [each.name for each in graph.output]
        learned.walk(live_nodes(graph.node, outputs), inner)
        ends = [inner.resolve(name) for name in outputs]
        value = _decided(learned, made, ends[0], "condition")
        if value is None:
            return
        carried = ends[1 : 1 + len(carried)]
        for found, name in zip(scanned, ends[1 + len(carried) :], strict=True):
            found.append(name)
        step += 1
        if not value.reshape(-1)[0]:
            break
    if scanned and not step:
        learned.name_unsupported(made, "Loop", "it has no iteration, and results of each")
        return
    _hand_out(learned, carried, made.output, frame)
    for names, result in zip(scanned, made.output[len(carried) :], strict=True):
        if result:
            _stack(learned, names, result, frame)


def _stack(learned: ModelWalker, names: Sequence[str], result: str, frame: Frame) -> None:
    """Concatenate the results of all iterations, in a new dimension."""
    rows = []
    for index, name in enumerate(names):
        row, axes = f"{result}/{index}", f"{result}/axes"
        if frame.versions.get("", 0) < 13:
            view = helper.make_node("Unsqueeze", [name], [row], axes=[0])
        else:
            learned.constants[axes] = np.array([0])
            learned.learn(axes, TensorProto.INT64, (1,))
            view = helper.make_node("Unsqueeze", [name, axes], [row])
        learned.visit(view, frame)
        rows.append(row)
    learned.visit(helper.make_node("Concat", rows, [result], axis=0), frame)


def _prefix(learned: ModelWalker, node: onnx.NodeProto) -> str:
    learned.expanded += 1
    return f"{node.name or node.op_type}.{learned.expanded}"


def _inside(learned: ModelWalker, node: onnx.NodeProto, graph: onnx.GraphProto, frame: Frame) -> Frame:
    """Return the frame of a branch or an iteration."""
    inner = Frame(
        versions=frame.versions,
        prefix=_prefix(learned, node),
        parent=frame,
        attributes=frame.attributes,
        functions=frame.functions,
        stated={value.name: value.type for value in (*graph.value_info, *graph.output)},
    )
    learned.add_parameters(graph, inner)
    for each in graph.node:
        inner.names.update((name, inner.own(name)) for name in each.output if name)
    return inner


def _walk_body(
    learned: ModelWalker,
    node: onnx.NodeProto,
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[str],
    results: Sequence[str],
    inner: Frame,
) -> None:
    """Walk a body; its outputs get the names of the results."""
    learned.expanded += len(nodes)
    if learned.expanded > MOST:
        learned.name_unsupported(node, node.op_type, f"bodies have more than {MOST} operators in all")
        return
    made = {name for each in nodes for name in each.output}
    for output, result in zip(outputs, results, strict=False):
        if result and output in made:
            inner.names[output] = result
            made.discard(output)
    learned.walk(live_nodes(nodes, outputs), inner)
    rest = [
        (inner.resolve(output), result) for output, result in zip(outputs, results, strict=False) if result
    ]
    _hand_out(learned, [name for name, _ in rest], [result for _, result in rest], inner)


def _hand_out(learned: ModelWalker, names: Sequence[str], results: Sequence[str], frame: Frame) -> None:
    """Copy tensors under the names of results."""
    for name, result in zip(names, results, strict=False):
        if result and name != result:
            view = helper.make_node("Identity", [name], [result])
            learned.visit(view, frame)
