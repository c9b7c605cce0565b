"""The simulation side of `vadd`: tensors to a launch, and its golden results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from examples.vadd.engine import VaddConfig, VaddWorkload
from hw.board import Board
from hw.errors import InputError
from hw.launch import Buffer, Launch, Tensor, Tensors
from sim.run.adapter import Case, EngineAdapter
from sim.run.files import tensor_file
from sim.run.host_call import HostCall, host_tensor


class VaddAdapter(EngineAdapter):
    """See `sim.run.adapter.EngineAdapter`; a job is the tensors ``a`` and ``b``, int32 of one length."""

    name = "vadd"
    input_files = (tensor_file({"a, b": "[n]: the summands, int32"}),)

    def job(self, tensors: Tensors, config: VaddConfig) -> Tensors:
        """Check the summands."""
        for name in tensors:
            if name not in ("a", "b"):
                raise InputError("tensor name", name, "one of a, b")
        for name in "ab":
            if name not in tensors:
                raise InputError("tensors", ", ".join(tensors), f"a and b; {name} is missing")
            if tensors[name].dtype != np.int32:
                raise InputError(f"type of {name}", tensors[name].dtype.name, "int32")
            if tensors[name].ndim != 1 or not tensors[name].size:
                raise InputError(f"shape of {name}", tensors[name].shape, "of one dimension and not empty")
        if tensors["a"].shape != tensors["b"].shape:
            raise InputError("shape of b", tensors["b"].shape, f"{tensors['a'].shape}, that of a")
        return {name: tensors[name] for name in "ab"}

    def launch(self, job: Tensors, config: VaddConfig, board: Board) -> Launch:
        """Lay a and b out as they are; c is as long."""
        inputs = (
            Buffer(argument=name, data=job[name].view(np.uint8), size_bytes=job[name].nbytes) for name in "ab"
        )
        output = Buffer(argument="c", data=None, size_bytes=job["a"].nbytes, output=True)
        return Launch(scalars={"words": job["a"].size}, buffers=(*inputs, output))

    def host_call(self, job: Tensors, config: VaddConfig, board: Board) -> HostCall:
        """Describe a, b and c, which lie in memory as they are."""

        def write(elements: Sequence[Tensor]) -> dict[str, NDArray[np.uint8]]:
            return {name: each.view(np.uint8) for name, each in zip("ab", elements, strict=True)}

        shape = job["a"].shape
        return HostCall(
            inputs=tuple(host_tensor(name, shape, "int32") for name in "ab"),
            outputs=(host_tensor("c", shape, "int32", output=True),),
            write=write,
            read=lambda buffers: self.outputs(job, config, buffers),
        )

    def golden(self, job: Tensors, config: VaddConfig) -> dict[str, Tensor]:
        """Add; NumPy wraps as the gates do."""
        return {"c": job["a"] + job["b"]}

    def outputs(
        self, job: Tensors, config: VaddConfig, buffers: Mapping[str, NDArray[np.uint8]]
    ) -> dict[str, Tensor]:
        """Read c as int32."""
        return {"c": buffers["c"].view(np.int32)}

    def results(self, job: Tensors, config: VaddConfig, integers: Tensors) -> dict[str, Tensor]:
        """Return c as real numbers."""
        return {"c": integers["c"].astype(np.float64)}

    def errors(self, job: Tensors, config: VaddConfig, integers: Tensors) -> dict[str, float]:
        """Return the share of sums that wrapped: only those differ from real numbers."""
        exact = job["a"].astype(np.float64) + job["b"]
        return {"wrapped": float(np.mean(integers["c"] != exact))}

    def items(self, job: Tensors) -> tuple[int, str]:
        """Return the sums."""
        return job["a"].size, "sums"

    def workload(self, job: Tensors, config: VaddConfig) -> VaddWorkload:
        """Return the length alone."""
        return VaddWorkload(words=job["a"].size)

    def cases(self) -> Iterator[Case]:
        """Return a part of a beat, some bursts, and many words through the smallest queues, which run dry."""
        rng = np.random.default_rng(0)
        for words, memory, fifo_beats in ((3, "fast", 128), (20_000, "jitter", 16), (4000, "model", 128)):
            config = VaddConfig(fifo_beats=fifo_beats)
            tensors = {name: rng.integers(-(2**31), 2**31, words, np.int32) for name in "ab"}
            yield Case(name=f"{words}_{memory}", board="u55c", config=config, tensors=tensors, memory=memory)


ADAPTER = VaddAdapter()
