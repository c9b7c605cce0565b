"""Bodies of a model: its graph, functions, branches and loops; the nodes of each have their own names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx


@dataclass(kw_only=True)
class Frame:
    """The scope of names in a body."""

    versions: Mapping[str, int]  #: Versions of the operator sets, by domain.
    prefix: str = ""  #: Prefix of the names of the body's results; empty in the model's own graph.
    #: The body around a branch or a loop, whose tensors it reads; a function reads none but its operands.
    parent: Frame | None = None
    #: Attributes of a function's call, to which its nodes refer.
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict)
    functions: tuple[str, ...] = ()  #: Names of the calling functions, to find cycles.
    #: Names of the body's tensors in the whole model.
    names: dict[str, str] = field(default_factory=dict)
    #: Types stated by the body of its tensors.
    stated: Mapping[str, onnx.TypeProto] = field(default_factory=dict)

    def resolve(self, name: str) -> str:
        """Return the name in the whole model of a tensor the body reads."""
        if not name:
            return ""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                return frame.names[name]
            if frame.parent is None:
                break
            frame = frame.parent
        return frame.own(name) if frame else name

    def own(self, name: str) -> str:
        """Return the name in the whole model of a tensor the body makes."""
        return f"{self.prefix}/{name}" if name and self.prefix else name

    def copied(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """Return a node of the body with names of the whole model, and without its own bodies."""
        if not self.prefix and not any(each.ref_attr_name for each in node.attribute):
            return node
        found = onnx.NodeProto(name=node.name, op_type=node.op_type, domain=node.domain)
        found.input.extend(map(self.resolve, node.input))
        found.output.extend(self.names.get(name, self.own(name)) for name in node.output)
        for attribute in node.attribute:
            kept = attribute
            if attribute.ref_attr_name:
                if attribute.ref_attr_name not in self.attributes:
                    continue
                kept = onnx.AttributeProto()
                kept.CopyFrom(self.attributes[attribute.ref_attr_name])
                kept.name = attribute.name
            if not kept.HasField("g") and not kept.graphs:
                found.attribute.append(kept)
        return found


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Return the graphs among a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def graphs_within(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    """Return all bodies of nodes, those within bodies too."""
    waiting = [graph for node in nodes for graph in bodies(node)]
    while waiting:
        graph = waiting.pop()
        yield graph
        waiting += [inner for node in graph.node for inner in bodies(node)]


def names_read(node: onnx.NodeProto) -> set[str]:
    """Return all names a node may read, those of its bodies too."""
    found = set(node.input)
    for graph in graphs_within([node]):
        found.update(value.name for value in graph.output)
        for inner in graph.node:
            found.update(inner.input)
    found.discard("")
    return found


def live_nodes(nodes: Sequence[onnx.NodeProto], wanted: Iterable[str]) -> list[onnx.NodeProto]:
    """Return the nodes on which one of these tensors depends, in their order.

    Nodes that are out of order are all kept: reading them reports the missing tensor.
    """
    needed, alive = set(wanted), []
    makers = {name: index for index, node in enumerate(nodes) for name in node.output}
    for index in range(len(nodes) - 1, -1, -1):
        node = nodes[index]
        if not needed.intersection(node.output):
            continue
        read = names_read(node)
        if any(makers.get(name, -1) >= index for name in read):
            return list(nodes)
        needed |= read
        alive.append(node)
    return alive[::-1]
