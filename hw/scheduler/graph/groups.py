"""Pipelined groups after InTAR (arXiv 2502.08807): a producer and its only consumer share the array.

One after the other, two operators each use the whole array, and the tensor between them lies in the
scratchpad or in memory.  As a group they split the array, and the tensor passes through a buffer of a few
rows, with little room and no traffic.  In return the other tensors of both are needed at once, and a step of
the group takes as long as its slowest member.
"""

from collections.abc import Mapping
from dataclasses import replace

from hw.scheduler.graph.graph import Access, Graph, Operator, TensorKind


def candidates(graph: Graph, *, most_members: int = 2) -> tuple[tuple[str, str], ...]:
    """Return the pairs of operators that can share the array, by name, producer first.

    The producer has one output, an activation, and only the consumer reads it, by rows.  No tensor is read by
    both: it would have to pass twice.  Either may be a group already, up to ``most_members`` in all.
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
                # Without a shape the size of a row is unknown.
                and consumer.accesses[name].axis < len(graph.tensor[name].shape)
                and not set(producer.inputs) & set(consumer.inputs)
                and len(producer.chain) + len(consumer.chain) <= most_members
                # A pipeline is a chain: its head must read the tensor.
                and name in consumer.chain[0].inputs
            ):
                found.append((producer.name, consumer.name))
    return tuple(found)


def group(graph: Graph, *pairs: tuple[str, str], word_bytes: int = 32) -> Graph:
    """Join each pair of operators or groups into a pipelined group at the position of the second.

    The pairs are from `candidates`, and no operator is in two of them.  Buffers are rounded up to words.
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
    # The buffer is read first: else the member before, and its reads, would stall.
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
        least_cycles=producer.least_cycles + consumer.least_cycles,
        weight_bytes=producer.weight_bytes + consumer.weight_bytes,
        accesses=accesses,
        members=(*producer.chain, head, *rest),
        inner=(*producer.inner, graph.tensor[between], *consumer.inner),
    )
    return replace(operator, fifo_bytes=sum(buffer_bytes(operator, word_bytes).values()))


def through(first: Access, second: Access) -> Access:
    """Return the access of an output to the input of the operator before it.

    ``first`` is the access of the tensor between to the input, ``second`` that of the output to the tensor
    between.  With upsampling there is one more row at either end; otherwise the result is exact.
    """
    exact = first.up == second.up == 1
    # A row of the tensor between has stride/up rows of the input; rounding is bounded both ways.
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
    """Return the buffer size of each inner tensor of a group, by name, in pipeline order.

    A size is in bytes of whole words: the rows that a row of its reader needs, and those made meanwhile.
    """
    found = {}
    for tensor in operator.inner:
        reader = next(member for member in operator.members if tensor.name in member.inputs)
        access = reader.accesses[tensor.name]
        found[tensor.name] = tensor.row_words(access.held_rows, access.axis, word_bytes) * word_bytes
    return found
