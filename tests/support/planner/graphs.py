"""Random and hand-made graphs for tests of the planner's parts."""

import random

from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind


def random_graph(seed: int, operators: int, *, most_bytes: int = 400) -> Graph:
    """Return a graph of operators with one to three operands, some with two results, odd sizes and rows."""
    rng = random.Random(seed)
    tensors = [
        _tensor(rng, f"in{number}", most_bytes, rng.choice((TensorKind.INPUT, TensorKind.WEIGHT)))
        for number in range(rng.randint(1, 2))
    ]
    made = []
    for number in range(operators):
        pool = [tensor.name for tensor in tensors]
        # Recent tensors are likelier: chains with branches, as networks are.
        inputs = dict.fromkeys(
            pool[max(0, len(pool) - 1 - int(rng.expovariate(0.4)))] for _ in range(rng.randint(1, 3))
        )
        outputs = [
            _tensor(rng, f"t{number}{suffix}", most_bytes, TensorKind.ACTIVATION)
            for suffix in ("", "b")[: 1 + (rng.random() < 0.15)]
        ]
        accesses = {
            name: Access(kernel=rng.randint(1, 3), stride=rng.randint(1, 2), pad=rng.randint(0, 1))
            for name in inputs
            if rng.random() < 0.6
        }
        made.append(
            Operator(
                name=f"op{number}",
                kind="conv",
                inputs=tuple(inputs),
                outputs=tuple(tensor.name for tensor in outputs),
                macs=rng.randint(0, 20000),
                accesses=accesses,
            )
        )
        tensors += outputs
    used = {name for operator in made for name in operator.inputs}
    kept = []
    for tensor in tensors:
        kind = tensor.kind
        if tensor.off_chip_first and tensor.name not in used:
            continue
        if kind is TensorKind.ACTIVATION and (tensor.name not in used or rng.random() < 0.05):
            kind = TensorKind.OUTPUT
        kept.append(Tensor(name=tensor.name, size_bytes=tensor.size_bytes, shape=tensor.shape, kind=kind))
    return Graph(name=f"random{seed}", tensors=tuple(kept), operators=tuple(made))


def pipelined_graph() -> Graph:
    """Return a graph in which a group of two members stands between plain operators."""
    first = Operator(
        name="conv1",
        kind="conv",
        inputs=("a",),
        outputs=("inside",),
        macs=9000,
        accesses={"a": Access(kernel=3)},
    )
    second = Operator(
        name="conv2",
        kind="conv",
        inputs=("inside", "skip"),
        outputs=("b",),
        macs=5000,
        accesses={"inside": Access(kernel=3), "skip": Access()},
    )
    group = Operator(
        name="conv1+conv2",
        kind="group",
        inputs=("a", "skip"),
        outputs=("b",),
        macs=14000,
        accesses={"a": Access(kernel=5), "skip": Access()},
        members=(first, second),
        inner=(Tensor(name="inside", size_bytes=1024, shape=(32, 32)),),
        fifo_bytes=192,
    )
    rows = ("x", "a", "skip", "b", "y")
    kinds = {"x": TensorKind.INPUT, "y": TensorKind.OUTPUT}
    return Graph(
        name="pipelined",
        tensors=tuple(
            Tensor(name=name, size_bytes=1024, shape=(32, 32), kind=kinds.get(name, TensorKind.ACTIVATION))
            for name in rows
        ),
        operators=(
            Operator(name="stem", kind="conv", inputs=("x",), outputs=("a", "skip"), macs=100),
            group,
            Operator(
                name="tail",
                kind="add",
                inputs=("b", "x"),
                outputs=("y",),
                accesses={"b": Access(), "x": Access()},
            ),
        ),
    )


def _tensor(rng: random.Random, name: str, most_bytes: int, kind: TensorKind) -> Tensor:
    if rng.random() < 0.3:
        return Tensor(name=name, size_bytes=rng.randint(1, most_bytes), kind=kind)
    rows = rng.randint(1, 8)
    row_bytes = rng.randint(1, max(1, most_bytes // rows))
    return Tensor(name=name, size_bytes=rows * row_bytes, shape=(rows, row_bytes), kind=kind)
