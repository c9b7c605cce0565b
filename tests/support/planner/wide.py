"""Networks with an operator of many operands."""

from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind


def wide(count, *, rows=16, row_bytes=256, channels=4):
    """Make ``count`` convolutions of one input, each with its activation function, and a concatenation."""

    def tensor(name, kind, channels):
        shape = (channels, rows, row_bytes)
        size = channels * rows * row_bytes
        return Tensor(name=name, shape=shape, element_bits=8, size_bytes=size, kind=kind)

    made, sums = ([f"{letter}{number}" for number in range(count)] for letter in "ts")
    plain = Access(axis=1, output_axis=1)
    reach = Access(axis=1, output_axis=1, kernel=3, pad=1)
    convolutions = [
        Operator(
            name=f"conv_{name}", kind="conv", inputs=("x",), outputs=(name,), macs=9, accesses={"x": reach}
        )
        for name in sums
    ]
    functions = [
        Operator(name=f"relu_{name}", kind="relu", inputs=(one,), outputs=(name,), accesses={one: plain})
        for name, one in zip(made, sums, strict=True)
    ]
    by_rows = dict.fromkeys(made, plain)
    joined = Operator(name="concat", kind="concat", inputs=tuple(made), outputs=("y",), accesses=by_rows)
    return Graph(
        name=f"wide_{count}",
        tensors=(
            tensor("x", TensorKind.INPUT, channels),
            *(tensor(name, TensorKind.ACTIVATION, channels) for name in (*sums, *made)),
            tensor("y", TensorKind.OUTPUT, count * channels),
        ),
        operators=(*convolutions, *functions, joined),
    )
