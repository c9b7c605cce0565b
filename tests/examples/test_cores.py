"""Cores in designs of one's own: the page's commands, its designs in Amaranth and in Verilog, and a fault."""

import ast
import functools
import json
import random
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from amaranth.hdl import Fragment

import hw.cores
from examples.cores.add_one import AddOne
from examples.cores.one_head import OneHead
from examples.cores.separable import Separable
from examples.cores.vectors import BEAT_BITS, EXAMPLES, NUMBERS, config_of, main, separable_program
from hw.cores import conv_streams
from sim.build.lint import lint
from tests.support.command_line import call
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import Side, exchange, get, payload_of, put, seeds, simulate
from tests.support.testbench import environment, need_icarus

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "cores"
PAGE = (ROOT / "docs" / "use-a-core.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Cores of each example.
CORES = {"one_head": ["attention"], "separable": ["conv"], "add_one": ["read-dma", "write-dma"]}
#: A wrong bit: the lowest one of an output of a core.
FAULTS = {
    "one_head": ("attention", "o_payload"),
    "separable": ("conv", "o_payload"),
    "add_one": ("write-dma", "m_axi_wdata"),
}


def test_examples_import_public_names_only():
    """Of the project only `hw.cores`, and golden models for the vectors."""
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("hw", "sim", "tests"):
                golden = path.stem == "vectors" and node.module.startswith("sim.golden.")
                assert node.module == "hw.cores" or golden, f"{path.name}: {node.module}"


def test_the_page_names_every_public_name():
    (listed,) = re.findall(r"^Public names.*?\n\n(.*?)\n\n[^|]", PAGE, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed)) == set(hw.cores.__all__)


def test_the_page_names_the_defaults_of_the_examples_makefile():
    text = (ROOT / "examples" / "cores" / "Makefile").read_text()
    defaults = dict(re.findall(r"^(\w+) +\?= (\S+)$", text, re.MULTILINE))
    page = " ".join(PAGE.split())
    for name in ("STALL", "RESET_AT", "SEED"):
        (told,) = re.findall(rf"`{name}` (?:is|draws) [^:]*: ([\d.]+) by default", page)
        assert told == defaults[name]


def test_the_page_names_the_fields_that_a_core_does_not_have():
    for name, label in (("attention", "attention"), ("conv", "convolution")):
        assert (
            f"| {label} | " + ", ".join(f"`{field}`" for field in hw.cores.CORES[name].fixed) + " |" in PAGE
        )


def test_the_page_s_design_in_amaranth():
    ((_, text),) = [block for block in BLOCK.findall(PAGE) if block[0] == "python"]
    names = {}
    exec(text, names)
    Fragment.get(names["m"], None)


# In Amaranth


def run_streams(dut, vectors, *, stall, seed):
    sides = {}
    for name, items in vectors.inputs.items():
        port = getattr(dut, name)
        given = [payload_of(port.payload, item) for item in items]
        sides[name] = Side(port, items=given, stall=stall)
    (output,) = vectors.outputs
    sides["output"] = Side(getattr(dut, output), count=len(vectors.outputs[output]), stall=stall)
    exchange(dut, sides, seed=seed, limit=50_000)
    assert sides["output"].received == vectors.outputs[output]


@pytest.mark.parametrize("seed", seeds(1, 12))
def test_one_head_in_amaranth(seed):
    stall = (0.4, 0.0, 0.8)[seed % 3]
    run_streams(
        OneHead(config_of("attention"), **NUMBERS), EXAMPLES["one_head"](seed), stall=stall, seed=seed
    )


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_separable_in_amaranth(seed):
    items = conv_streams(separable_program(seed))
    dut = Separable(config_of("conv"), items, beat_bits=BEAT_BITS)
    vectors = EXAMPLES["separable"](seed)
    assert len(set(vectors.outputs["o"])) > len(vectors.outputs["o"]) / 2
    run_streams(dut, vectors, stall=(0.3, 0.0, 0.7)[seed % 3], seed=seed)


@pytest.mark.parametrize("seed", seeds(1, 12))
def test_add_one_in_amaranth(seed):
    rng = random.Random(seed)
    dut = AddOne()
    memory = AxiMemory(dut.axi, stall=(0.3, 0.0, 0.8)[seed % 3], seed=seed)
    sizes = [
        (rng.randrange(4096), 8192 + 1024 * n + rng.randrange(64), rng.randint(1, 200)) for n in range(5)
    ]
    jobs = [dict(zip(("source", "target", "length"), size, strict=True)) for size in sizes]
    expected = {
        job["target"] + n: (byte + 1) & 0xFF
        for job in jobs
        for n, byte in enumerate(memory.content(job["source"], job["length"]))
    }

    async def send(ctx):
        await put(ctx, dut.i_job, jobs, seed=seed)

    async def wait(ctx):
        assert await get(ctx, dut.o_done, len(jobs), stall=0.5, seed=seed) == [0] * len(jobs)

    simulate(dut, send, wait, background=memory.testbenches())
    assert memory.bytes == expected


# In Verilog


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a function that carries out the page's commands before ``make`` of an example, once each, and
    returns the folder of cores.
    """
    need_icarus()
    directory = tmp_path_factory.mktemp("cores")
    (directory / "examples").symlink_to(ROOT / "examples")

    @functools.cache
    def cores_of(top):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(directory)
            for line in commands(top):
                program, *words = shlex.split(line, comments=True)
                if program == "loomwork":
                    call(*words)
                elif program == "python":
                    assert words[:2] == ["-m", main.__module__]
                    main(words[2:])
        return directory / "build" / "cores"

    return cores_of


def commands(top):
    """Return the page's lines for an example, up to its call of make."""
    lines = [line for kind, text in BLOCK.findall(PAGE) if kind == "" for line in text.splitlines()]
    ends = [n for n, line in enumerate(lines) if line.startswith("make -C examples/cores ")]
    (last,) = [n for n in ends if f" TOP={top} CORES=$PWD/build/cores" in lines[n]]
    return lines[max((n + 1 for n in ends if n < last), default=0) : last + 1]


def bench(top, cores, *variables):
    command = ["make", "-C", str(FOLDER), f"TOP={top}", f"CORES={cores}", *variables]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=900
    )


def quick(*tops):
    """Mark the other examples for the soak."""
    return [pytest.param(top, marks=[] if top in tops else pytest.mark.soak) for top in EXAMPLES]


@pytest.mark.parametrize("top", quick("one_head"))
def test_the_page_s_run_in_icarus_is_exact(folder, top):
    run = bench(top, folder(top), "STALL=0.4")
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]
    assert " compared, 0 differ" in run.stdout
    assert "PASS=1 FAIL=0" in run.stdout
    assert "warning: " not in run.stdout + run.stderr  # of the elaboration


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("top", EXAMPLES)
def test_other_pauses_and_resets_in_icarus(folder, top, seed):
    run = bench(top, folder(top), f"STALL={seed * 0.2:.1f}", f"SEED={seed}", f"RESET_AT={seed * 37}")
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]


@pytest.mark.parametrize("top", quick("one_head"))
def test_a_wrong_bit_of_the_core_fails(folder, tmp_path, top):
    core, port = FAULTS[top]
    for name in (*CORES[top], top):
        shutil.copytree(folder(top) / name, tmp_path / name)
    (source,) = (tmp_path / core).glob("loomwork_*.v")
    text = source.read_text()
    begin = text.index(f"\nmodule {source.stem}(")
    # What drives the port drives a wire instead.
    faulty, times = re.subn(rf"\({port}\)|(?<=assign ){port}(?= =)", planted, text[begin:])
    assert times == 1
    wrong = rf"\g<0>\n  wire \1 planted;\n  assign {port} = planted ^ 1;"
    faulty, times = re.subn(rf"\n  wire (\[\d+:0\]) {port};", wrong, faulty)
    assert times == 1
    source.write_text(text[:begin] + faulty)
    run = bench(top, tmp_path)
    assert run.returncode != 0
    assert re.search("results differ from the golden model's|memory differs", run.stdout)
    assert "FAIL=1" in run.stdout


def planted(match):
    return "(planted)" if match[0].startswith("(") else "planted"


@pytest.mark.parametrize("top", quick("add_one"))
def test_linters_have_nothing_to_say(folder, top):
    cores = folder(top)
    sources = [str(path) for name in CORES[top] for path in sorted((cores / name).glob("*.v"))]
    assert lint(FOLDER / f"{top}.v", "-Wall", "--top-module", top, f"-I{cores / top}", *sources) == ""


@pytest.mark.parametrize("top", quick("one_head", "add_one"))
def test_ports_that_the_verilog_names_are_the_core_s(folder, top):
    """Every port of the core is named in the instance: none is left open by mistake."""
    text = (FOLDER / f"{top}.v").read_text()
    for core in CORES[top]:
        meta = json.loads((folder(top) / core / "meta.json").read_text())
        instance = text[text.index(f" {meta['module']} ") :].partition(");\n")[0]
        assert set(re.findall(r"\.(\w+)\(", instance)) == {port["name"] for port in meta["ports"]}
