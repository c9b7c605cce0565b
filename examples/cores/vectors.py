"""Inputs and golden results of the examples, for any test bench: ``python -m examples.cores.vectors -h``."""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.hdl import Shape

from hw.cores import (
    AttentionConfig,
    ChannelParameters,
    ConvLayer,
    ConvProgram,
    ConvStep,
    IntegerJob,
    LayerTensors,
    MapName,
    Output,
    Scaling,
    conv_shapes,
    conv_streams,
    find_core,
    item_bits,
    map_words,
)
from sim.golden.attention.formats import Arithmetic
from sim.golden.attention.model import attention_job
from sim.golden.conv.attributes import Attributes
from sim.golden.conv.formats import requantized
from sim.golden.conv.model import accumulators

FOLDER = Path(__file__).parent
#: Scores and results of `one_head`.
NUMBERS = {"multiplier": 70_000, "shift": 18, "fraction": 6}
#: Sizes of `separable`: rows and columns of a frame, channels in and out.
ROWS, COLUMNS, CHANNELS, OUTPUTS = 5, 6, 16, 16
BEAT_BITS = 128


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """Items of the streams of an example, as numbers."""

    inputs: dict[str, list[int]]  #: By stream.
    outputs: dict[str, list[int]]
    files: dict[str, str] = field(default_factory=dict)  #: Text of files that the Verilog reads, by name.


def one_head(seed: int = 0) -> Vectors:
    """Return two jobs of `examples.cores.one_head`."""
    config = config_of("attention")
    rng = np.random.default_rng(seed)
    inputs: dict[str, list[int]] = {name: [] for name in ("i_size", "i_k", "i_v", "i_q")}
    outputs: list[int] = []
    for queries, keys in ((5, 20), (2, 16)):
        q, k, v = (
            rng.integers(-128, 128, (1, count, config.lanes)).astype(np.int8)
            for count in (queries, keys, keys)
        )
        inputs["i_size"].append(queries | keys << 7)
        for name, tensor in (("i_k", k), ("i_v", v), ("i_q", q)):
            inputs[name] += numbers(tensor[0])
        job = IntegerJob(
            q=q,
            k=k,
            v=v,
            scale=Scaling(multiplier=NUMBERS["multiplier"], shift=NUMBERS["shift"]),
            output=Output(fraction=NUMBERS["fraction"]),
        )
        outputs += numbers(attention_job(job, arithmetic(config))[0])
    return Vectors(inputs=inputs, outputs={"o": outputs})


def separable(seed: int = 0, *, frames: int = 2) -> Vectors:
    """Return frames for `examples.cores.separable`, and its layer as files for ``separable.v``."""
    program = separable_program(seed)
    rng = np.random.default_rng(seed + 1)
    inputs: dict[str, list[int]] = {"i_frame": [0] * frames, "i": []}
    outputs: list[int] = []
    for _ in range(frames):
        x = rng.integers(-128, 128, (CHANNELS, ROWS, COLUMNS)).astype(np.int8)
        inputs["i"] += words_of(program, program.maps["x"].form, x)
        outputs += words_of(program, program.maps["y"].form, separable_golden(program, x))
    return Vectors(inputs=inputs, outputs={"o": outputs}, files=layer_files(program))


def add_one() -> Vectors:
    """Return no vectors: the bench of `examples.cores.add_one` draws its memory."""
    return Vectors(inputs={}, outputs={})


def separable_program(seed: int = 0) -> ConvProgram:
    """Return the job: 3 x 3 depthwise with a border of 1, then 1 x 1, with drawn weights."""
    rng = np.random.default_rng(seed)
    layers = (
        ConvLayer(
            channels=CHANNELS,
            rows=ROWS,
            columns=COLUMNS,
            outputs=CHANNELS,
            group=CHANNELS,
            kernel=(3, 3),
            pads=(1, 1, 1, 1),
            zero=-3,
        ),
        ConvLayer(channels=CHANNELS, rows=ROWS, columns=COLUMNS, outputs=OUTPUTS),
    )
    step = ConvStep(
        name="separable",
        layers=tuple(
            LayerTensors(
                layer=layer,
                w=rng.integers(
                    -128, 128, (layer.outputs, layer.channels // layer.group, *layer.kernel)
                ).astype(np.int8),
                parameters=ChannelParameters(
                    bias=rng.integers(-5000, 5000, layer.outputs),
                    multiplier=rng.integers(2**15, 2**16, layer.outputs),
                    shift=np.full(layer.outputs, 25),
                    post=rng.integers(-9, 9, layer.outputs),
                ),
            )
            for layer in layers
        ),
        source=MapName(name="x"),
        result="y",
    )
    frame = np.zeros((CHANNELS, ROWS, COLUMNS), np.int8)  # of the program; each frame has words of its own
    return ConvProgram(config=config_of("conv"), inputs={"x": frame}, steps=(step,), beat_bits=BEAT_BITS)


def separable_golden(program: ConvProgram, x: Any) -> Any:
    """Return the results of a frame by the golden model: int8 [C, H, W]."""
    for tensors in program.steps[0].layers:
        layer, scale = tensors.layer, tensors.parameters
        attributes = Attributes(pads=layer.pads, group=layer.group)
        sums = accumulators(x, tensors.w, attributes, zero=layer.zero, bias=scale.bias)
        x = requantized(sums, scale.multiplier, scale.shift, scale.post)
    return x


def layer_files(program: ConvProgram) -> dict[str, str]:
    """Return commands and weights as constants of Verilog."""
    shapes = conv_shapes(program.config, beat_bits=program.beat_bits)
    lines = []
    for name, items in conv_streams(program).items():
        if name == "i" or not items:
            continue
        width = Shape.cast(shapes[name]).width
        value = sum(item_bits(shapes[name], item) << n * width for n, item in enumerate(items))
        lines.append(
            f"localparam [{width * len(items) - 1}:0] {name.upper()} = {width * len(items)}'h{value:x};"
        )
        if name.endswith("weights"):
            lines.append(f"localparam integer {name.upper().replace('WEIGHTS', 'BEATS')} = {len(items)};")
    return {"separable.vh": "\n".join(lines) + "\n"}


def words_of(program: ConvProgram, form: Any, tensor: Any) -> list[int]:
    """Return a map [C, H, W] as the words of a stream."""
    return numbers(map_words(program.config, form, tensor).reshape(-1, program.config.lanes))


def config_of(core: str) -> Any:
    """Return the configuration of an example's core."""
    return find_core(core).load(FOLDER / f"{core.replace('-', '_')}.yaml")


def arithmetic(config: AttentionConfig) -> Arithmetic:
    """Return the arithmetic of a core, for its golden model."""
    return Arithmetic(
        tile_keys=config.tile_keys,
        streams=config.streams,
        probability_bits=config.probability_bits,
        exp_segments=config.exp_segments,
    )


def numbers(rows: Any) -> list[int]:
    """Return rows of numbers as items, the first number lowest."""
    return [int.from_bytes(np.ascontiguousarray(row).tobytes(), "little") for row in rows]


#: By the name of the top module.
EXAMPLES: dict[str, Callable[[], Vectors]] = {
    "one_head": one_head,
    "separable": separable,
    "add_one": add_one,
}


def main(words: Sequence[str] | None = None) -> None:
    """Write the vectors of an example, and the files that its Verilog reads."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("example", choices=EXAMPLES)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder to write")
    given = parser.parse_args(words)
    found = EXAMPLES[given.example]()
    given.output.mkdir(parents=True, exist_ok=True)
    vectors = {
        side: {name: [f"{item:x}" for item in items] for name, items in streams.items()}
        for side, streams in (("inputs", found.inputs), ("outputs", found.outputs))
    }
    for name, text in {**found.files, "vectors.json": json.dumps(vectors, indent=1) + "\n"}.items():
        (given.output / name).write_text(text)


if __name__ == "__main__":
    main()
