"""Random networks of operators that onnxruntime has each run alone."""

import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hw.scheduler.graph.importers.onnx_bodies import names_read
from tests.hw.scheduler.graph.onnx_models import run

INT = np.int64
UNARY = (
    "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "HardSigmoid", "Neg",
    "Abs",
    "Exp", "Floor", "Ceil", "Sqrt", "Sin", "Erf", "Identity", "Dropout",
)  # fmt: skip


class Network:
    """A network that grows by operators that onnxruntime accepts.

    Members: ``shapes`` of its floats by name, ``macs`` of all its products, and the parts of a model.
    """

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.opset = self.rng.choice((9, 10, 11, 12, 13, 15, 17, 18, 19, 20, 21, 22))
        self.nodes, self.constants = [], {}
        self.shapes, self.macs, self.count = {}, 0, 0
        rank = self.rng.choice((3, 4, 4, 4, 5))
        extents = [self.rng.randint(5, 11) for _ in range(rank - 2)]
        self.inputs = {"x": (self.rng.choice((1, 2)), self.rng.choice((3, 4, 6, 8)), *extents)}
        self.shapes["x"] = self.inputs["x"]
        wanted, tries = self.rng.randint(4, 14), 0
        while len(self.shapes) <= wanted and tries < 80:
            tries += 1
            self._grow()

    def name(self, of="t"):
        self.count += 1
        return f"{of}{self.count}"

    def constant(self, value, kind=None):
        name = self.name("c")
        self.constants[name] = np.asarray(value, kind)
        return name

    def weight(self, *shape):
        return self.constant(np.ones(shape, np.float32))

    def whole(self, *values):
        """Whole numbers as a parameter, a Constant node, or computed from other constants."""
        way = self.rng.random()
        if way < 0.6:
            return self.constant(values, INT)
        name = self.name("k")
        if way < 0.8 or not values:
            tensor = numpy_helper.from_array(np.array(values, INT))
            self.pending.append(helper.make_node("Constant", [], [name], value=tensor))
            return name
        # Through floats and back, as exporters compute sizes.
        half, two = self.constant([each / 2 for each in values], np.float32), self.constant([2.0], np.float32)
        product = self.name("k")
        self.pending += [
            helper.make_node("Mul", [half, two], [product]),
            helper.make_node("Cast", [product], [name], to=TensorProto.INT64),
        ]
        return name

    def extent(self, source, axis):
        """One extent of a tensor, by its shape when the network runs."""
        shape, found, index = self.name("k"), self.name("k"), self.constant([axis], INT)
        self.pending += [
            helper.make_node("Shape", [source], [shape]),
            helper.make_node("Gather", [shape, index], [found], axis=0),
        ]
        return found

    def _grow(self):
        names = list(self.shapes)
        source = self.rng.choice(names[-3:])
        makers = [name for name in dir(self) if name.startswith("make_")]
        maker = getattr(self, self.rng.choice(makers))
        self.pending, kept = [], dict(self.constants)
        if not self.shapes[source] and maker not in (self.make_unary, self.make_sum, self.make_squeeze):
            return
        made = maker(source, self.shapes[source])
        if made is None:
            self.constants = kept
            return
        op, operands, attributes, *more = made
        outputs = [self.name() for _ in range(more[0] if more else 1)]
        node = helper.make_node(op, operands, outputs, name=self.name("n"), **attributes)
        nodes = [*self.pending, node]
        made_inside = {name for each in nodes for name in each.output}
        read = {name for each in nodes for name in each.input if name} - made_inside
        feeds = {name: np.ones(self.shapes[name], np.float32) for name in read if name in self.shapes}
        constants = {name: self.constants[name] for name in read if name in self.constants}
        try:
            results = run(nodes, feeds, constants, outputs, opset=self.opset)
        # onnxruntime raises any exception; a model that it refuses is no network.
        except Exception:
            self.constants = kept
            return
        size = max(value.size for value in results.values())
        if size > 4000 or any(0 in value.shape for value in results.values()):
            self.constants = kept
            return
        self.nodes += nodes
        self.macs += self._macs(node, results[outputs[0]])
        for name in outputs:
            if results[name].dtype == np.float32:
                self.shapes[name] = results[name].shape

    def _macs(self, node, result):
        """Sum a product of ones: as many as there are multiplications, padding included."""
        shape = self.shapes.get(node.input[0])
        if node.op_type in ("MatMul", "Gemm"):
            return int(result.sum())
        if node.op_type == "Conv":
            return result.size * self.constants[node.input[1]][0].size
        if node.op_type == "ConvTranspose":
            return int(np.prod(shape)) * self.constants[node.input[1]][0].size
        return 0

    def outputs(self):
        read = {name for node in self.nodes for name in node.input}
        return [name for name in self.shapes if name not in read and name not in self.inputs] or [
            list(self.shapes)[-1]
        ]

    def _spatial(self, shape):
        return len(shape) - 2 if len(shape) in (3, 4, 5) else 0

    def _windows(self, count):
        kernel = [self.rng.randint(1, 4) for _ in range(count)]
        attributes = {"kernel_shape": kernel} if self.rng.random() < 0.8 else {}
        if self.rng.random() < 0.6:
            attributes["strides"] = [self.rng.randint(1, 3) for _ in range(count)]
        if self.rng.random() < 0.3:
            attributes["dilations"] = [self.rng.randint(1, 2) for _ in range(count)]
        way = self.rng.random()
        if way < 0.5:
            attributes["pads"] = [self.rng.randint(0, 2) for _ in range(2 * count)]
        elif way < 0.8:
            attributes["auto_pad"] = self.rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        return kernel, attributes

    def make_conv(self, source, shape):
        if not (count := self._spatial(shape)):
            return None
        group = self.rng.choice([each for each in (1, 1, 2, 3, shape[1]) if shape[1] % each == 0])
        kernel, attributes = self._windows(count)
        filters = group * self.rng.randint(1, 3)
        operands = [source, self.weight(filters, shape[1] // group, *kernel)]
        return "Conv", operands, attributes | ({"group": group} if group > 1 else {})

    def make_conv_transpose(self, source, shape):
        if not (count := self._spatial(shape)):
            return None
        kernel, attributes = self._windows(count)
        if self.rng.random() < 0.4:
            strides = attributes.get("strides", [1] * count)
            attributes["output_padding"] = [self.rng.randint(0, stride - 1) for stride in strides]
        operands = [source, self.weight(shape[1], self.rng.randint(1, 3), *kernel)]
        return "ConvTranspose", operands, attributes

    def make_pool(self, source, shape):
        if not (count := self._spatial(shape)):
            return None
        op = self.rng.choice(("MaxPool", "AveragePool"))
        kernel, attributes = self._windows(count)
        attributes["kernel_shape"] = kernel
        if op == "AveragePool" and self.opset < 19:
            attributes.pop("dilations", None)
        if self.opset >= 10 and self.rng.random() < 0.5:
            attributes["ceil_mode"] = 1
        return op, [source], attributes

    def make_global_pool(self, source, shape):
        if not self._spatial(shape) or self.rng.random() < 0.6:
            return None
        return self.rng.choice(("GlobalAveragePool", "GlobalMaxPool")), [source], {}

    def make_normalization(self, source, shape):
        op = self.rng.choice(("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN"))
        if not self._spatial(shape):
            return None
        channels = shape[1]
        if op == "BatchNormalization":
            return op, [source, *(self.weight(channels) for _ in range(4))], {}
        if op == "InstanceNormalization":
            return op, [source, self.weight(channels), self.weight(channels)], {}
        if op == "LRN":
            return op, [source], {"size": 3}
        groups = self.rng.choice([each for each in (1, 2, 3, channels) if channels % each == 0])
        if self.opset < 18:
            return None
        each = groups if self.opset < 21 else channels
        return op, [source, self.weight(each), self.weight(each)], {"num_groups": groups}

    def make_layer_normalization(self, source, shape):
        if self.opset < 17:
            return None
        axis = self.rng.randint(-len(shape), -1)
        return "LayerNormalization", [source, self.weight(*shape[axis:])], {"axis": axis}

    def make_unary(self, source, shape):
        return self.rng.choice(UNARY), [source], {}

    def make_sum(self, source, shape):
        op = self.rng.choice(("Add", "Sub", "Mul", "Div", "Max", "Min", "Where"))
        mates = [name for name, other in self.shapes.items() if other == shape]
        way, other = self.rng.random(), self.rng.choice(mates)
        if way < 0.5:
            kept = [extent if self.rng.random() < 0.5 else 1 for extent in shape]
            other = self.weight(*kept[self.rng.randint(0, len(kept)) :])
        if op == "Where":
            if self.opset < 9:
                return None
            return op, [self.constant(np.ones(shape, bool)), source, other], {}
        return op, [source, other], {}

    def make_product(self, source, shape):
        columns = self.rng.randint(1, 6)
        if len(shape) == 2 and self.rng.random() < 0.6:
            turned = self.rng.randint(0, 1)
            weight = self.weight(*((columns, shape[1]) if turned else (shape[1], columns)))
            return "Gemm", [source, weight], {"transB": turned}
        if len(shape) > 1 and self.rng.random() < 0.3:
            turned = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
            other = self.name("k")
            self.pending.append(helper.make_node("Transpose", [source], [other], perm=turned))
            return "MatMul", [source, other], {}
        return "MatMul", [source, self.weight(shape[-1], columns)], {}

    def make_reshape(self, source, shape):
        extents = list(shape)
        way = self.rng.random()
        if way < 0.3:
            return "Reshape", [source, self.whole(extents[0], -1)], {}
        if way < 0.5 and len(extents) > 2:
            return "Reshape", [source, self.whole(0, 0, -1)], {}
        if way < 0.8 and len(extents) > 1:
            sizes, rest = self.name("k"), self.whole(-1)
            operands = [self.extent(source, 0), self.extent(source, len(extents) - 1), rest]
            self.pending.append(helper.make_node("Concat", operands, [sizes], axis=0))
            return "Reshape", [source, sizes], {}
        if self.rng.random() < 0.5:
            return "Flatten", [source], {"axis": self.rng.randint(0, len(extents))}
        return "Reshape", [source, self.whole(*extents[::-1])], {}

    def make_squeeze(self, source, shape):
        ones = [index for index, extent in enumerate(shape) if extent == 1]
        if ones and self.rng.random() < 0.5:
            axes, op = self.rng.sample(ones, self.rng.randint(1, len(ones))), "Squeeze"
        else:
            axes, op = [self.rng.randint(0, len(shape))], "Unsqueeze"
        if len(shape) > 5:
            return None
        if self.opset >= 13:
            return op, [source, self.whole(*axes)], {}
        return op, [source], {"axes": axes}

    def make_transpose(self, source, shape):
        order = list(range(len(shape)))
        self.rng.shuffle(order)
        return "Transpose", [source], {"perm": order} if self.rng.random() < 0.8 else {}

    def make_concat(self, source, shape):
        axis = self.rng.randint(-len(shape), len(shape) - 1)
        wild = axis % len(shape)
        mates = [
            name
            for name, other in self.shapes.items()
            if other[:wild] == shape[:wild] and other[wild + 1 :] == shape[wild + 1 :] and len(other) > wild
        ]
        return "Concat", [source, self.rng.choice(mates)], {"axis": axis}

    def make_split(self, source, shape):
        axis = self.rng.randint(0, len(shape) - 1)
        first = self.rng.randint(1, max(1, shape[axis] - 1))
        sizes = [first, shape[axis] - first]
        if self.opset < 13:
            return "Split", [source], {"axis": axis, "split": sizes}, 2
        if self.opset >= 18 and self.rng.random() < 0.5:
            return "Split", [source], {"axis": axis, "num_outputs": 2}, 2
        return "Split", [source, self.whole(*sizes)], {"axis": axis}, 2

    def make_slice(self, source, shape):
        axis = self.rng.randint(-len(shape), len(shape) - 1)
        begin, end = self.rng.randint(-4, 4), self.rng.choice((2, 5, -1, 2**31, 2**62))
        if self.opset < 10:
            return "Slice", [source], {"starts": [begin], "ends": [end], "axes": [axis % len(shape)]}
        operands = [source, self.whole(begin), self.constant([end], INT), self.whole(axis)]
        if self.rng.random() < 0.5:
            operands.append(self.whole(self.rng.choice((1, 2, 3, -1))))
        return "Slice", operands, {}

    def make_pad(self, source, shape):
        pads = [self.rng.choice((0, 0, 0, 1, 2, -1)) for _ in range(2 * len(shape))]
        mode = self.rng.choice(("constant", "edge", "reflect"))
        if self.opset < 11:
            return "Pad", [source], {"pads": pads, "mode": mode}
        if self.opset >= 18 and shape and self.rng.random() < 0.4:
            axis = self.rng.randint(-len(shape), len(shape) - 1)
            return "Pad", [source, self.whole(*pads[:2]), "", self.whole(axis)], {"mode": mode}
        return "Pad", [source, self.whole(*pads)], {"mode": mode}

    def make_resize(self, source, shape):
        if len(shape) != 4:
            return None
        factors = [1.0, 1.0, *(self.rng.choice((0.5, 0.7, 1.0, 1.3, 1.5, 2.0, 3.0)) for _ in range(2))]
        mode = self.rng.choice(("nearest", "linear"))
        if self.opset < 10:
            if min(factors) < 1:
                return None
            return "Upsample", [source, self.constant(factors, np.float32)], {"mode": mode}
        if self.opset < 11:
            return "Resize", [source, self.constant(factors, np.float32)], {"mode": mode}
        attributes = {
            "mode": mode,
            "coordinate_transformation_mode": self.rng.choice(("asymmetric", "half_pixel")),
        }
        if self.rng.random() < 0.5:
            roi = self.constant([], np.float32)
            return "Resize", [source, roi, self.constant(factors, np.float32)], attributes
        empty = self.constant([], np.float32)
        sizes = [shape[0], shape[1], self.rng.randint(1, 9), self.rng.randint(1, 9)]
        if self.opset >= 18 and self.rng.random() < 0.5:
            policy = self.rng.choice(("not_larger", "not_smaller", "stretch"))
            more = {"axes": [2, 3], "keep_aspect_ratio_policy": policy}
            return "Resize", [source, "", "", self.whole(*sizes[2:])], attributes | more
        return "Resize", [source, empty, empty, self.whole(*sizes)], attributes

    def make_gather(self, source, shape):
        axis = self.rng.randint(-len(shape), len(shape) - 1)
        extent = shape[axis]
        indices = [self.rng.randint(-extent, extent - 1) for _ in range(self.rng.randint(1, 3))]
        if self.rng.random() < 0.3:
            return "Gather", [source, self.constant(indices[0], INT)], {"axis": axis}
        return "Gather", [source, self.whole(*indices)], {"axis": axis}

    def make_reduction(self, source, shape):
        op = self.rng.choice(("ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2", "ReduceProd"))
        axes = self.rng.sample(range(len(shape)), self.rng.randint(1, len(shape)))
        attributes = {"keepdims": self.rng.randint(0, 1)}
        if self.opset >= (13 if op == "ReduceSum" else 18):
            return op, [source, self.whole(*axes)], attributes
        return op, [source], attributes | {"axes": axes}

    def make_softmax(self, source, shape):
        return (
            self.rng.choice(("Softmax", "LogSoftmax")),
            [source],
            {"axis": self.rng.randint(0 if self.opset < 11 else -len(shape), len(shape) - 1)},
        )

    def make_top(self, source, shape):
        if self.rng.random() < 0.5:
            return None
        axis = self.rng.randint(0, len(shape) - 1)
        if self.rng.random() < 0.5:
            self.pending.append(
                helper.make_node("ArgMax", [source], [index := self.name("k")], axis=axis, keepdims=1)
            )
            return "Cast", [index], {"to": TensorProto.FLOAT}
        kept = self.rng.randint(1, shape[axis])
        if self.opset < 10:
            return "TopK", [source], {"axis": axis, "k": kept}, 2
        return "TopK", [source, self.whole(kept)], {"axis": axis}, 2

    def make_expand(self, source, shape):
        if self.rng.random() < 0.5:
            return "Tile", [source, self.constant([self.rng.randint(1, 2) for _ in shape], INT)], {}
        sizes = [self.rng.randint(1, 3) if extent == 1 else extent for extent in shape]
        return "Expand", [source, self.whole(*sizes[self.rng.randint(0, len(sizes)) :])], {}

    def make_blocks(self, source, shape):
        if len(shape) != 4:
            return None
        return self.rng.choice(("DepthToSpace", "SpaceToDepth")), [source], {"blocksize": 2}

    def make_branch(self, source, shape):
        """An If whose condition follows from the shapes, with an activation of the outer graph inside."""
        if self.rng.random() < 0.5:
            return None
        flag = self.name("k")
        limit = self.constant([self.rng.choice((0, 10**6))], INT)
        self.pending.append(helper.make_node("Less", [self.extent(source, 0), limit], [flag]))
        bodies = []
        for op in self.rng.sample(("Relu", "Sigmoid", "Abs"), 2):
            inner = self.name("b")
            node = helper.make_node(op, [source], [inner])
            bodies.append(helper.make_graph([node], "body", [], [onnx.ValueInfoProto(name=inner)]))
        for body in bodies:
            body.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
        return "If", [flag], {"then_branch": bodies[0], "else_branch": bodies[1]}

    def make_loop(self, source, shape):
        """A Loop of known count that adds, and keeps the result of each iteration."""
        if self.opset < 11 or self.rng.random() < 0.5:
            return None
        step, going, before, after, kept = (self.name("b") for _ in range(5))
        body = helper.make_graph(
            [
                helper.make_node("Add", [before, source], [after]),
                helper.make_node("Tanh", [after], [kept]),
                helper.make_node("Identity", [going], [end := self.name("b")]),
            ],
            "body",
            [
                helper.make_tensor_value_info(step, TensorProto.INT64, []),
                helper.make_tensor_value_info(going, TensorProto.BOOL, []),
                helper.make_tensor_value_info(before, TensorProto.FLOAT, None),
            ],
            [
                helper.make_tensor_value_info(end, TensorProto.BOOL, []),
                helper.make_tensor_value_info(after, TensorProto.FLOAT, None),
                helper.make_tensor_value_info(kept, TensorProto.FLOAT, None),
            ],
        )
        count, go = self.constant(self.rng.randint(1, 3), INT), self.constant(True, bool)
        return "Loop", [count, go, source], {"body": body}, 2

    def model(self):
        """Return the model's bytes, its batch sometimes open, and the values of its dimensions."""
        outputs = self.outputs()
        inputs, dimensions = [], {}
        for name, shape in self.inputs.items():
            extents = list(shape)
            if self.rng.random() < 0.4:
                dimensions = {"batch": extents[0]}
                extents[0] = "batch"
            inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, extents))
        read = {name for node in self.nodes for name in names_read(node)}
        graph = helper.make_graph(
            self.nodes,
            "network",
            inputs,
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items() if name in read],
        )
        if self.rng.random() < 0.3:  # a shape stated for another batch
            wrong = [3 * extent for extent in self.shapes[outputs[0]]]
            graph.value_info.append(helper.make_tensor_value_info(outputs[0], TensorProto.FLOAT, wrong))
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        made.ir_version = 8
        return made.SerializeToString(), dimensions
