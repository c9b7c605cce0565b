"""Packages in Icarus Verilog, where a bit may be X: nothing that was never written reaches a result.

What memories hold at first is X, or drawn at random: zeros would hide who reads it.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.board import load_board
from hw.board.files import find_board
from hw.conv.config import ConvConfig
from hw.package import write_package
from hw.registry import find_engine
from hw.scheduler.graph.graph import Graph, Operator, Tensor, TensorKind
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan_model import plan_model
from sim.build.design import kernel_design
from sim.engines.attention.cases import random_tensors
from sim.run.card import write_launch
from sim.run.run import Target, compare
from tests.support.engines import small_engines
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized
from tests.support.testbench import make_bench, need_icarus

BOARD = "u55c"

#: Of each engine the configuration of the regression, whose design is there anyway.
SMALL = {name: config for name, _, config in small_engines()}
#: Three rows, of which one is alone.
ROWS = AttentionConfig(
    rows=3, lanes=16, folds=2, tile_keys=16, streams=2, ports_per_stream=1, result_ports=1, merge_lanes=2,
    cached_keys=64, logit_cap=True, alibi=True, paged=True,
)  # fmt: skip
#: Whose words fill no word of a memory port.
CONV = ConvConfig(
    lanes=8, taps=1, inputs=8, outputs=8, ports=1, port_bits=128, bank_words=64, memory="block",
    block_pixels=16, block_words=64, bypass_words=64, tap_words=64, dot_words=16, offset_entries=64,
    strip_words=16, gather_words=64,
)  # fmt: skip

#: A plain layer, a deformable one with offsets from a map, a pointwise one; no size is one of words.
NETWORK = """name,kind,H,Cin,Cout,K,s,g,OH
stem,conv,4,3,10,3,2,1,2
dc0.off,pw,2,10,1,1,1,1,2
dc0.ddw,ddw,2,10,10,3,1,10,2
dc0.pw,pw,2,10,9,1,1,1,2
"""
#: A unit with a shuffle, whose strip takes a cycle a word, too.
HEAD, _ = NETWORK.split("\n", 1)
UNITS_BEHIND = """s1.1.pw1,pw,3,10,10,1,1,1,3
s1.1.dw,dw,3,10,10,3,1,10,3
s1.1.pw2,pw,3,10,10,1,1,1,3
"""
UNITS = f"{HEAD}\n{UNITS_BEHIND}"
OPERATIONS = "op,key,value\nput,1,5\nget,1,\n"


def attention(path, queries, keys, **modes):
    """Write tensors whose sizes fill no part."""
    rng = np.random.default_rng([queries, keys])
    tensors = {"q": rng.normal(size=(len(modes.get("alibi_slopes", [0])), queries, 20))}
    tensors |= {name: rng.normal(size=(1, keys, size)) for name, size in (("k", 20), ("v", 27))}
    np.savez(path, **tensors, **modes)


def drawn(path, seed):
    """Write tensors of a launch of any mode."""
    np.savez(path, **random_tensors(np.random.default_rng(seed), ROWS))


def plan(path):
    """Write the plan of a chain with a branch."""
    kinds = [TensorKind.INPUT, *[TensorKind.ACTIVATION] * 4, TensorKind.OUTPUT]
    sizes = (1024, 2048, 2048, 1024, 2048, 1024)
    tensors = tuple(
        Tensor(name=f"t{n}", size_bytes=size, kind=kind)
        for n, (size, kind) in enumerate(zip(sizes, kinds, strict=True))
    )
    reads = ((0,), (1,), (2,), (1, 3), (4,))
    operators = tuple(
        Operator(name=f"op{n}", kind="op", inputs=tuple(f"t{i}" for i in inputs), outputs=(f"t{n}",))
        for n, inputs in enumerate(reads, start=1)
    )
    graph = Graph(name="branch", tensors=tensors, operators=operators)
    path.write_text(plan_to_json(plan_model(graph, "5KiB", board=load_board(BOARD))))


def model(path):
    """Write a network with work for both units; no layer fills its granules."""
    net = Builder("tiny")
    x = net.input("image", 1, 5, 5, 4)
    y = net.conv(x, 9, name="a", kernel=3, groups=1)
    y = net.add("Add", net.conv(y, 9, name="b"), y, name="sum")
    y = net.add("MaxPool", net.add("Tanh", y, name="tanh"), name="pool", kernel_shape=[2, 2], strides=[2, 2])
    y = net.add("Flatten", net.add("GlobalAveragePool", y, name="mean"), name="flat")
    net.output(net.add("Softmax", net.dense(y, 5, name="classes"), name="shares", axis=-1))
    path.write_bytes(quantized(net.model()))


#: Engine, configuration if it is no small one, option of the file, and what writes it.
RUNS = {
    "attention": ("attention", None, "input", lambda path: attention(path, 1, 40)),
    "conv": ("conv", None, "network", lambda path: path.write_text(NETWORK)),
    "scheduler": ("scheduler", None, "plan", plan),
    "oram": ("oram", None, "ops", lambda path: path.write_text(OPERATIONS)),
    "network": ("network", None, "model", model),
    "attention_rows": (
        "attention",
        None,
        "input",
        lambda path: attention(path, 3, 20, causal=True, logit_cap=8.0, alibi_slopes=[0.3, 0.2]),
    ),
    "attention_decodes": ("attention", None, "input", lambda path: attention(path, 1, 300, window=250)),
    **{f"attention_{n}": ("attention", ROWS, "input", lambda path, n=n: drawn(path, n)) for n in range(4)},
    "conv_units": ("conv", None, "network", lambda path: path.write_text(UNITS)),
    "conv_narrow": ("conv", CONV, "network", lambda path: path.write_text(NETWORK + UNITS_BEHIND)),
}
SUFFIXES = {"input": ".npz", "network": ".csv", "plan": ".json", "ops": ".csv", "model": ".onnx"}
#: In `make test`: a short launch of convolution, beside the one of attention in `test_cocotb`. The others
#: take Icarus longer.
QUICK = {("conv", "x")}


def with_contents(verilog):
    """Return Verilog whose memories hold random words where they would hold X."""
    made = set(re.findall(r"^    (\\?\S+) ?\[\d+\] = ", verilog, re.MULTILINE))
    lines = []
    for line in verilog.splitlines():
        lines.append(line)
        found = re.match(r"\s*(?:\(\*.*\*\)\s*)?reg (?:\[(\d+):0\] )?(\\?\S+) +\[(\d+):0\];", line)
        if found and found[2] not in made:
            words = ", ".join(["$urandom"] * (int(found[1] or 0) // 32 + 1))
            n = len(lines)
            lines.append(
                f"  integer fill_{n}; initial for (fill_{n} = 0; fill_{n} <= {found[3]}; "
                f"fill_{n} = fill_{n} + 1) {found[2]} [fill_{n}] = {{{words}}};"
            )
    return "\n".join(lines)


def points():
    for name in RUNS:
        for contents in ("x", "random"):
            marks = [] if (name, contents) in QUICK else [pytest.mark.soak]
            yield pytest.param(name, contents, marks=marks, id=f"{name}-{contents}")


@pytest.mark.parametrize(("name", "contents"), list(points()))
def test_what_was_never_written_reaches_no_result(name, contents, tmp_path):
    need_icarus()
    engine, config, option, write = RUNS[name]
    board, package, folder = load_board(BOARD), tmp_path / "package", tmp_path / "card"
    config = config or SMALL[engine]
    files = write_package(kernel_design(find_engine(engine), config, board), package)
    write(path := tmp_path / f"given{SUFFIXES[option]}")
    target = Target.of(engine, config, board)
    manifest = write_launch(target, find_board(BOARD), {option: path}, folder, seed=0)

    sources = [path for path in files if path.suffix == ".v"]
    if contents == "random":
        text = with_contents(sources[0].read_text())
        assert text.count("$urandom") > 4
        sources[0].write_text(text)
    run = make_bench(package, folder, "SIM=icarus")
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]
    results = {
        entry.name: np.fromfile(folder / "results" / f"{entry.name}.bin", np.uint8)
        for entry in manifest.pointers
        if entry.output
    }
    adapter = target.adapter
    job = target.prepare(adapter.read_files({option: path}, config, seed=0)).job
    assert compare(adapter.outputs(job, config, results), adapter.golden(job, config)) == ()
