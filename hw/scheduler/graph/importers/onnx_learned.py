"""Shapes, element types and constants of an ONNX model, learned operator by operator.

Each operator is read alone, from known operands.  Its shapes come from its rule in `rules`, else from the
model's statement, last from ONNX's inference.  Inference of a whole model is avoided: it crashes the process
on some damaged models.  Values that follow from constants and shapes are computed at once, because later
shapes depend on them.  Branches, loops and functions are inlined, so that their operators join the model's.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from hw.scheduler.graph.importers.onnx_bodies import Frame, bodies, live_nodes
from hw.scheduler.graph.importers.onnx_constants import constant_of, one_line, read_values
from hw.scheduler.graph.importers.onnx_control import CONTROL, call_function, expand
from hw.scheduler.graph.importers.onnx_inference import infer
from hw.scheduler.graph.importers.onnx_input_shapes import InputShapes, open_error, stated_extents
from hw.scheduler.graph.importers.onnx_operators import OPERATORS, VIEWS
from hw.scheduler.graph.importers.onnx_products import PRODUCTS
from hw.scheduler.graph.importers.onnx_signatures import (
    OnnxSignature,
    check_attributes,
    check_operands,
    result_types,
    signature,
)  # fmt: skip
from hw.scheduler.graph.importers.onnx_standins import RUNTIME, STAND_INS, advice, full_name
from hw.scheduler.graph.importers.onnx_tensors import Tensors, measured
from hw.scheduler.graph.importers.rules.call import Misfit, NodeCall, Shape, Unknown
from hw.scheduler.graph.importers.rules.table import RULES

#: Operators that enter the graph, or vanish as views.
SUPPORTED = frozenset((*OPERATORS, *PRODUCTS, *STAND_INS, *VIEWS))
#: Operators that only make constants, without operands or from the shape of their operand.
_SHAPES = frozenset(("Constant", "Shape", "Size", "EyeLike"))


class Learned(Tensors):
    """Facts about the tensors of a model, by name.

    ``where``: its file, for errors. ``folder``: the folder of its other files. ``say``: called with a line
    for each wrong statement of the model.

    Raises `InputError` for a damaged parameter, an operator whose operands do not fit it, unsupported
    operators (all in one error), open dimensions of inputs that are read (all in one error).
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        given: InputShapes,
        where: str,
        folder: Path | None,
        say: Callable[[str], None],
    ) -> None:
        super().__init__(where, folder)
        graph = model.graph
        self.functions = {(each.domain, each.name, each.overload): each for each in model.functions}
        versions = {use.domain: use.version for use in model.opset_import}
        self.opset = versions.get("", 1)  #: Version of ONNX's own operators that the model uses.
        #: The operators in their order, with functions, branches and loops replaced by their operators.
        self.nodes: list[onnx.NodeProto] = []
        self.opsets: dict[str, int] = {}  #: Version by result, if a function uses another.
        self.unsupported: dict[str, str] = {}
        #: Number of inlined operators so far.
        self.expanded = 0
        self._asked: dict[str, onnx.ValueInfoProto] = {}
        self._open: dict[str, onnx.ValueInfoProto] = {}
        #: Inputs that are no tensors, and one of them that is read.
        self._strange: dict[str, str] = {}
        self._read_strange = ""
        self._stale: list[str] = []
        self._disputed: list[str] = []
        self._listed = frozenset(name for node in graph.node for name in node.output)
        stated = {value.name: value.type for value in (*graph.value_info, *graph.output)}
        frame = Frame(versions=versions, stated=stated)
        self.add_parameters(graph, frame)
        inputs = [value for value in graph.input if value.name not in self.constants]
        given.check(inputs)
        self._bound = given.bound(inputs)
        self._stated_types = stated
        for value in inputs:
            self._add_input(value, given)
        self.walk(live_nodes(graph.node, [value.name for value in graph.output]), frame)
        self._refuse_unsupported()
        for value in graph.output:
            if value.name not in self.known:
                raise self.refuse(
                    "output of the model", value.name, "made by an operator, an input or a parameter"
                )
            self.ask(value.name)
        if self._read_strange:
            kind = self._strange[self._read_strange]
            raise self.refuse(f"type of input {self._read_strange!r}", kind, "a tensor")
        if self._asked:
            raise open_error(list(self._asked.values()), self._bound)
        if self._stale:
            more = f"; so of {len(self._stale) - 1} more" if len(self._stale) > 1 else ""
            say(f"{where}: {self._stale[0]}{more}; shapes are computed from the inputs'")
        if self._disputed:
            say(f"{where}: {self._disputed[0]}; what the model states is taken")

    def ask(self, name: str) -> None:
        """Note that an input's shape is needed."""
        if name in self._open:
            self._asked[name] = self._open[name]
        if name in self._strange:
            self._read_strange = name

    def _add_input(self, value: onnx.ValueInfoProto, given: InputShapes) -> None:
        kind = value.type.WhichOneof("value") or "tensor_type"
        if kind != "tensor_type":
            self._strange[value.name] = kind.removesuffix("_type")
            self.lose([value.name])
            return
        if (element := value.type.tensor_type.elem_type) not in TensorProto.DataType.values():
            raise self.refuse(f"type of input {value.name!r}", element, "an element type of ONNX")
        extents = given.extents(value, self._bound)
        if extents is None or None in extents:
            self._open[value.name] = value
            self.lost.add(value.name)
        self.learn(value.name, element, extents)

    def name_unsupported(self, node: onnx.NodeProto, name: str, why: str = "") -> None:
        """Report an operator that cannot be imported, and mark its results as unknown."""
        called = node.name or next(iter(node.output), "without a name")
        self.unsupported.setdefault(name, f"{name} (node {called}): {why or advice(name)}")
        self.lose(node.output)

    def _refuse_unsupported(self) -> None:
        if self.unsupported:
            found = "; ".join(text for _, text in sorted(self.unsupported.items()))
            legal = "supported ones, as docs/planner-graphs.md lists them"
            raise self.refuse("operators of the model", found, legal)

    def walk(self, nodes: Sequence[onnx.NodeProto], frame: Frame) -> None:
        """Learn the results of the nodes of a body."""
        for node in nodes:
            if not any(node.output):
                continue
            made = frame.copied(node)
            self._refuse_names(made)
            for name in made.input:
                self.ask(name)
            if (function := self.functions.get((node.domain, node.op_type, node.overload))) is not None:
                call_function(self, made, function, frame)
            elif node.op_type in CONTROL and not node.domain:
                expand(self, node, made, frame)
            elif any(bodies(node)):  # bodies may read any tensor
                self.name_unsupported(made, full_name(node))
            else:
                self._visit(made, frame)

    def visit(self, node: onnx.NodeProto, frame: Frame) -> None:
        """Learn the results of an operator that is not in a body."""
        self._refuse_names(node)
        self._visit(node, frame)

    def _visit(self, node: onnx.NodeProto, frame: Frame) -> None:
        """Learn the results of one operator."""
        name, of = full_name(node), called(node)
        given = list(filter(None, node.input))
        constant = name in _SHAPES or (bool(given) and self.constants.keys() >= set(given))
        version = frame.versions.get(node.domain, 0)
        if not version and (not node.domain or not frame.versions):
            legal = "named, with its version: the model names no operator set (opset_import)"
            raise self.refuse(f"operator set of {of}", "none", legal)
        runtime = node.domain == RUNTIME
        seen = None if runtime else signature(node.op_type, version, node.domain)
        wanted = self._unsupported_form(node, name)
        known = name in SUPPORTED or (constant and seen is not None and not node.domain)
        if not known or (wanted and not constant):
            self.name_unsupported(node, wanted or name)
            return
        if not self.lost.isdisjoint(given):
            if constant:  # of an open shape: a constant with unknown values
                self.constants.update((each, None) for each in node.output)
            self.lose(node.output)
            return
        types = [self.types[each] if each else 0 for each in node.input]
        try:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    read_values(attribute.t, self.where, self.folder)
            letters: dict[str, str] = {}
            if seen is not None:
                check_attributes(node, seen)
                letters = check_operands(node, seen, types)
            call = self._call(node, name, version, seen)
            shapes = self._shapes(node, name, call, frame)
            elements = _elements(node, name, seen, letters, types)
        except Misfit as error:
            raise self.refuse(f"{error.field} of {of}", error.value, error.legal) from error
        for index, each in enumerate(node.output):
            if each:
                self.learn(each, elements[index], shapes[index] if index < len(shapes) else None)
                if each not in self.shapes:
                    self.makers[each] = next((self.makers[one] for one in given if one in self.makers), of)
        if constant:
            self.fold(node, call, version)
        elif name == "Dropout" and len(node.output) > 1 and node.output[1]:
            self.fold_mask(node.output[1])
        self.nodes.append(node)
        if not node.domain and version != self.opset:
            self.opsets.update((each, version) for each in node.output)

    def _refuse_names(self, node: onnx.NodeProto) -> None:
        of = called(node)
        if strange := [name for name in node.input if name and name not in self.known]:
            legal = "a parameter, an input of the model, or made by an operator"
            if strange[0] in self._listed:
                legal = "made by an operator before it: the graph has a cycle, or is out of order"
            raise self.refuse(f"operand of {of}", strange[0], legal)
        if twice := [name for name in node.output if name and name in self.known]:
            raise self.refuse(f"result of {of}", twice[0], "a name that nothing else has")

    def _call(self, node: onnx.NodeProto, name: str, version: int, seen: OnnxSignature | None) -> NodeCall:
        """Describe an operator for its rule; a stand-in as its plain operator with the matching operands."""
        places: Sequence[int] = range(len(node.input))
        if (stand_in := STAND_INS.get(name)) is not None:
            places = stand_in.positions(len(node.input))
        operands = [node.input[place] for place in places]
        return NodeCall(
            op=stand_in.op if stand_in else name,
            shapes=tuple(self.shapes.get(each) if each else None for each in operands),
            values=tuple(self.constants.get(each) if each else None for each in operands),
            attributes={each.name: helper.get_attribute_value(each) for each in node.attribute},
            # Every stand-in matches the newest version of its plain operator.
            opset=max(self.opset, 20) if stand_in and node.domain == RUNTIME else version,
            results=len(node.output),
            labels=seen.labels if seen and stand_in is None else (),
        )

    def _shapes(self, node: onnx.NodeProto, name: str, call: NodeCall, frame: Frame) -> list[Shape | None]:
        """Return the shapes of a node's results: by its rule, the model's statement, or ONNX's inference."""
        known = all(not each or each in self.shapes for each in node.input)
        found: list[Shape | None] = []
        if name in ("Shape", "Size"):
            self.shape(node.input[0])
            return [measured(call).shape]
        if name == "Constant":
            return [constant_of(node, self.where, self.folder)[1]]
        rule = RULES.get(call.op)
        if rule is not None and known:
            try:
                made = rule(call)
                if (stand_in := STAND_INS.get(name)) is not None:
                    stand_in.check_others(node, [self.shapes.get(each) for each in node.input], made[0])
                found = list(made)
            except Unknown:
                found = []
        stated = [self._stated(each, frame) for each in node.output]
        if found and all(each is not None for each in found[: len(node.output)]):
            self._compare(node, found, stated)
            return found
        whole = all(shape is not None and None not in shape for shape in stated)
        inferred = self._inferred(node, frame, needed=not whole)
        agreed = []
        for each, claimed, seen in zip(node.output, stated, inferred, strict=True):
            agreed.append(self._agreed(each, claimed, seen))
        return agreed

    def _stated(self, name: str, frame: Frame) -> list[int | None] | None:
        """Return the extents that the body states of a result, by its name there."""
        inside = bool(frame.prefix) and name.startswith(f"{frame.prefix}/")
        # A body's output has the name of its node's result, whose type the model states.
        proto = frame.stated.get(name[len(frame.prefix) + 1 :]) if inside else self._stated_types.get(name)
        return None if proto is None else stated_extents(proto, self._bound)

    def _compare(
        self, node: onnx.NodeProto, found: Sequence[Shape | None], stated: Sequence[list[int | None] | None]
    ) -> None:
        for name, shape, claimed in zip(node.output, found, stated, strict=False):
            if shape is None or claimed is None:
                continue
            fits = len(shape) == len(claimed) and all(
                one in (None, other) for one, other in zip(claimed, shape, strict=True)
            )
            if not fits:
                said = [each if each is not None else "?" for each in claimed]
                self._stale.append(
                    f"the model states shape {said} of tensor {name!r}, which has {list(shape)}"
                )

    def _inferred(self, node: onnx.NodeProto, frame: Frame, *, needed: bool) -> list[list[int | None] | None]:
        if node.domain:  # ONNX does not know other domains
            return [None] * len(node.output)
        try:
            return infer(node, frame.versions, self.types, self.shapes, self.constants)
        except ValueError as error:
            if not needed:
                return [None] * len(node.output)
            legal = f"one whose shapes can be inferred ({one_line(error)})"
            raise self.refuse(called(node), node.op_type, legal) from error

    def _agreed(
        self, name: str, claimed: list[int | None] | None, seen: list[int | None] | None
    ) -> Shape | None:
        """Return the stated extents, with inferred ones for those that are missing."""
        if claimed is None:
            claimed = seen
        elif seen is not None:
            pairs = list(zip(claimed, seen, strict=False))
            if len(seen) != len(claimed) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
                self._disputed.append(
                    f"the model states shape {claimed} of tensor {name!r}, ONNX infers {seen}"
                )
            else:
                claimed = [other if one is None else one for one, other in pairs]
        if claimed is None or None in claimed:
            return None
        return tuple(each for each in claimed if each is not None)

    def _unsupported_form(self, node: onnx.NodeProto, name: str) -> str:
        """Name an unsupported form of a supported operator: images with channels last, training."""
        flags = {each.name for each in node.attribute if each.i}
        if node.domain == RUNTIME and flags & {"channels_last", "packed_weights"}:
            return f"{name} with channels last"
        if name == "Dropout" and len(node.input) > 2 and node.input[2]:
            value = self.constants.get(node.input[2])
            if value is None or value.any():
                return "Dropout in training"
        return ""


def _elements(
    node: onnx.NodeProto,
    name: str,
    seen: OnnxSignature | None,
    letters: Mapping[str, str],
    types: Sequence[int],
) -> list[int]:
    """Return the element types of a node's results."""
    stand_in = STAND_INS.get(name)
    if stand_in is None or seen is not None:
        return result_types(node, seen, letters, types)
    like = stand_in.like
    element = TensorProto.FLOAT if like is None else types[like] if like < len(types) else 0
    return [element, *(0 for _ in node.output[1:])]


def called(node: onnx.NodeProto) -> str:
    """Name an operator for errors."""
    if node.name and node.name != node.op_type:
        return f"operator {node.name!r} ({node.op_type})"
    made = next(filter(None, node.output), "")
    return f"operator {node.op_type!r}" + (f" of {made!r}" if made else "")
