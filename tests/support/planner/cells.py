"""Networks of wide cells, of any size, as in architecture search (NASNet, arXiv 1707.07012)."""

import random
from dataclasses import replace

from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind

#: Rows and columns of every tensor; channels of a cell's parts.
_ROWS, _CHANNELS = 28, 32

#: Branches of a cell, operators of a branch, and the sizes of their kernels.
_BRANCHES, _LENGTHS, _KERNELS = (10, 20), (2, 4), (1, 3, 5, 7)


def wide_cells(seed: int, operators: int) -> Graph:
    """Return a network of about as many operators, in cells one after the other.

    A cell reads the results of the two before it.  It has 10 to 20 branches, each a chain of convolutions
    from one of these results or from a sum of two earlier branches.  Branches are added in pairs.  Results
    without a reader in the cell are concatenated and reduced to the width of a part.
    """
    rng = random.Random(seed)
    tensors = [_tensor("x", _CHANNELS, TensorKind.INPUT)]
    made: list[Operator] = []

    def apply(kind: str, inputs: list[str], channels: int = _CHANNELS, kernel: int = 1) -> str:
        name = f"t{len(made)}"
        tensors.append(_tensor(name, channels, TensorKind.ACTIVATION))
        read = tuple(dict.fromkeys(inputs))
        access = Access(kernel=kernel, pad=kernel // 2)
        macs = _ROWS * _ROWS * channels * kernel * kernel if kind == "conv" else 0
        made.append(
            Operator(
                name=f"{kind}{len(made)}", kind=kind, inputs=read, outputs=(name,), macs=macs,
                weight_bytes=channels * kernel * kernel if kind == "conv" else 0,
                accesses=dict.fromkeys(read, access),
            )
        )  # fmt: skip
        return name

    before, last = "x", "x"
    while len(made) < operators:
        ends: list[str] = []
        sums: list[str] = []
        for _ in range(rng.randint(*_BRANCHES)):
            end = rng.choice([before, last, *sums])
            for _ in range(rng.randint(*_LENGTHS)):
                channels = _CHANNELS * rng.choice((1, 1, 2))
                end = apply("conv", [end], channels, rng.choice(_KERNELS))
            ends.append(end)
            if len(ends) == 2:
                sums.append(apply("add", ends))
                ends = []
        read = {name for operator in made for name in operator.inputs}
        joined = apply("concat", [name for name in (*sums, *ends) if name not in read], 4 * _CHANNELS)
        before, last = last, apply("conv", [joined])
    used = {name for operator in made for name in operator.inputs}
    kinds = {tensor.name: tensor.kind for tensor in tensors} | {
        tensor.name: TensorKind.OUTPUT for tensor in tensors if tensor.name not in used
    }
    return Graph(
        name=f"cells{seed}-{len(made)}",
        tensors=tuple(replace(tensor, kind=kinds[tensor.name]) for tensor in tensors),
        operators=tuple(made),
    )


def _tensor(name: str, channels: int, kind: TensorKind) -> Tensor:
    return Tensor(name=name, size_bytes=_ROWS * _ROWS * channels, shape=(_ROWS, _ROWS * channels), kind=kind)
