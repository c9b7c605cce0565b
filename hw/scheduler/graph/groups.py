"""Pipelined groups after InTAR (arXiv 2502.08807): a producer and its only consumer share the array.

One after the other, two operators have the whole array each, and the tensor between them lies in the
scratchpad, or leaves it.  As a group they split the array, and the tensor passes through a buffer of a few
rows: it costs neither much room nor traffic, but the other tensors of both are needed at once, and a step of
the group takes as long as its slowest member.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hw.scheduler.graph.graph import Access, Graph, Operator, TensorKind


def candidates(graph: Graph, *, most_members: int = 2) -> tuple[tuple[str, str], ...]:
    """Return the pairs of operators that can share the array, by name, producer first.

    The producer has one output, an activation; only the consumer reads it, by rows; and no tensor is read by
    both, which would have to pass twice.  Either may be a group already, as long as there are no more than
    ``most_members`` in all.
    """
    found = []
    for consumer in graph.operators:
        for name in consumer.inputs:
            producer = graph.producer.get(name)
            if (
                producer is not None
                and producer.outputs == (name,)
                and graph.tensor[name].kind is TensorKind.ACTIVATION
                and graph.consumers[name] == (consumer,)
                and name in consumer.accesses
                # Without a shape nothing is known of how much a row is.
                and consumer.accesses[name].axis < len(graph.tensor[name].shape)
                and not set(producer.inputs) & set(consumer.inputs)
                and len(producer.chain) + len(consumer.chain) <= most_members
                # A pipeline is a chain: what comes in must come in at its head.
                and name in consumer.chain[0].inputs
            ):
                found.append((producer.name, consumer.name))
    return tuple(found)


def group(graph: Graph, *pairs: tuple[str, str], word_bytes: int = 32) -> Graph:
    """Make two operators each, either of which may be a group, into a pipelined group in the place of the
    second.

    The pairs are of `candidates`, and no operator is in two of them.  Buffers are rounded up to words.
    """
    operators = {operator.name: operator for operator in graph.operators}
    between: set[str] = set()
    for first, second in pairs:
        producer = operators.pop(first)
        between.update(producer.outputs)
        operators[second] = _joined(producer, operators[second], graph, word_bytes)
    tensors = tuple(tensor for tensor in graph.tensors if tensor.name not in between)
    return replace(graph, tensors=tensors, operators=tuple(operators.values()))


def _joined(producer: Operator, consumer: Operator, graph: Graph, word_bytes: int) -> Operator:
    """Return the group of two operators."""
    (between,) = producer.outputs
    # What comes through a buffer is taken first: else the member before, and its reads, could not move on.
    head, *rest = consumer.chain
    head = replace(head, inputs=(between, *(name for name in head.inputs if name != between)))
    reach = consumer.accesses[between]
    accesses = {name: access for name, access in consumer.accesses.items() if name != between}
    for name, access in producer.accesses.items():
        if access.output_axis == reach.axis:
            accesses[name] = through(access, reach)
    operator = Operator(
        name=f"{producer.name}+{consumer.name}",
        kind="group",
        inputs=(*producer.inputs, *(name for name in consumer.inputs if name != between)),
        outputs=consumer.outputs,
        macs=producer.macs + consumer.macs,
        weight_bytes=producer.weight_bytes + consumer.weight_bytes,
        accesses=accesses,
        members=(*producer.chain, head, *rest),
        inner=(*producer.inner, graph.tensor[between], *consumer.inner),
    )
    return replace(operator, fifo_bytes=sum(buffer_bytes(operator, word_bytes).values()))


def through(first: Access, second: Access) -> Access:
    """Return the access of an output to an input two operators before it: ``first`` is that of the tensor
    between to the input, ``second`` that of the output to the tensor between.

    Exact where no row of an input makes several of an output; else a row more is named at either end.
    """
    exact = first.up == second.up == 1
    # Rows of the input per row of the tensor between are stride/up; its rounding is bounded both ways.
    ahead = second.pad + (second.up > 1)
    pad = first.pad - (-ahead * first.stride // first.up) + (not exact)
    behind = second.kernel - 1 - second.pad
    kernel = -(-behind * first.stride // first.up) - first.pad + first.kernel + pad + (not exact)
    return Access(
        axis=first.axis,
        output_axis=second.output_axis,
        kernel=kernel,
        stride=first.stride * second.stride,
        pad=pad,
        up=first.up * second.up,
    )


def buffer_bytes(operator: Operator, word_bytes: int) -> Mapping[str, int]:
    """Return the bytes, in whole words, of the buffer that each inner tensor of a group passes through, by
    its name, in pipeline order: the rows a row of its reader needs and those that are made meanwhile.
    """
    found = {}
    for tensor in operator.inner:
        reader = next(member for member in operator.members if tensor.name in member.inputs)
        access = reader.accesses[tensor.name]
        found[tensor.name] = tensor.row_words(access.held_rows, access.axis, word_bytes) * word_bytes
    return found
