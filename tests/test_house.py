"""Rules of the house that a machine can check: layers, names, nothing of one machine in the tree."""

import ast
import graphlib
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.words import prose_of

ROOT = Path(__file__).parent.parent


def modules(package):
    return sorted((ROOT / package).rglob("*.py"))


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def path_of(module):
    path = ROOT / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def tracked_files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


#: Room -> what its modules may import of the project beside their own room; a room is a module or a folder.
#: The most particular room counts, so that a folder inside of another has rules of its own.
DOORS = {
    "hw.errors": [],
    "hw.child": [],
    "hw.edge": ["hw.errors"],
    "hw.board": ["hw.errors", "hw.edge"],
    "hw.lib": ["hw.errors", "hw.board"],
    "hw.launch": [],
    "hw.prediction": ["hw.errors"],
    "hw.engine": ["hw.errors", "hw.board", "hw.lib", "hw.prediction"],
    "hw.energy": ["hw.errors", "hw.edge", "hw.board", "hw.engine", "hw.prediction"],
    "hw.registry": ["hw.errors", "hw.engine"],
    "hw.config": ["hw.errors", "hw.edge", "hw.board", "hw.engine"],
    "hw.design": ["hw.board", "hw.lib"],
    "hw.package": ["hw.errors", "hw.board", "hw.lib", "hw.design"],
    "hw.verilog": ["hw.errors", "hw.board", "hw.lib", "hw.engine", "hw.config", "hw.design", "hw.package"],
    # A core alone: above the engines, whose cores it has.
    "hw.cores": ["hw.errors", "hw.edge", "hw.lib", "hw.package", "hw.verilog", "hw.attention", "hw.conv"],
    "hw.oram.config": [
        "hw.errors", "hw.oram.sizing.lists", "hw.oram.sizing.queues", "hw.oram.sizing.records",
    ],
    "hw.oram.sizing": ["hw.errors", "hw.oram.config"],
    "hw.host.loomwork_host": [],
    "hw.oram.core.crypto": ["hw.errors", "hw.lib", "hw.oram.config", "hw.oram.core.layouts"],
    "hw.oram.client": [
        "hw.errors", "hw.launch", "hw.oram.config", "hw.oram.core.layouts", "hw.oram.kernel.arguments",
        "hw.oram.driver",
    ],
    "hw.scheduler.graph": ["hw.errors", "hw.edge"],
    "hw.scheduler.plan": ["hw.errors", "hw.edge", "hw.scheduler.graph"],
    "hw.scheduler.check": ["hw.errors", "hw.edge"],
    "hw.scheduler.compiled": [],
    "hw.scheduler.program": [
        "hw.errors", "hw.scheduler.compiled", "hw.board", "hw.scheduler.graph", "hw.scheduler.plan",
        "hw.scheduler.operators.timing",
    ],
    "hw.scheduler.program.latency": ["hw.lib"],
    "hw.scheduler.config": ["hw.errors", "hw.scheduler.program"],
    "hw.scheduler.planner": [
        "hw.errors", "hw.child", "hw.board", "hw.scheduler.compiled", "hw.scheduler.graph",
        "hw.scheduler.plan", "hw.scheduler.program",
    ],
    "hw.scheduler.core": ["hw.errors", "hw.lib", "hw.scheduler.config", "hw.scheduler.program"],
    "hw.scheduler.operators.timing": ["hw.scheduler.compiled", "hw.scheduler.program"],
    "hw.scheduler.operators": ["hw.scheduler.config", "hw.scheduler.core", "hw.scheduler.program"],
    "hw.scheduler.kernel": [
        "hw.lib", "hw.scheduler.config", "hw.scheduler.program", "hw.scheduler.core",
        "hw.scheduler.operators",
    ],
    "hw.scheduler.driver": [
        "hw.errors", "hw.launch", "hw.scheduler.config", "hw.scheduler.default_plan", "hw.scheduler.graph",
        "hw.scheduler.plan", "hw.scheduler.program",
    ],
    # The network engine plans by the scheduler's planner.
    "hw.network": ["hw.errors", "hw.board", "hw.lib", "hw.engine", "hw.prediction"],
    "hw.network.commands": [],
    "hw.network.normalization": ["hw.errors"],
    "hw.network.graph": ["hw.errors", "hw.network.normalization", "hw.scheduler.graph"],
    "hw.network.compile": [
        "hw.errors", "hw.board", "hw.lib", "hw.network.graph", "hw.network.commands",
        "hw.network.normalization", "hw.scheduler.graph",
        "hw.scheduler.plan", "hw.scheduler.plan_model", "hw.network.matrix.config",
        "hw.network.matrix.timing", "hw.network.vector.config", "hw.network.vector.timing",
        "hw.network.attention.config", "hw.network.attention.timing", "hw.network.scratchpad.shape",
        "hw.attention.driver.formats",
    ],
    "hw.network.scratchpad": ["hw.errors", "hw.lib"],
    "hw.network.tables": ["hw.lib"],
    "hw.network.matrix": [
        "hw.errors", "hw.lib", "hw.network.commands", "hw.network.scratchpad", "hw.network.tables",
    ],
    "hw.network.vector": [
        "hw.errors", "hw.lib", "hw.network.commands", "hw.network.normalization", "hw.network.scratchpad",
        "hw.network.tables",
    ],
    # The core of the attention engine is shared: docs/decisions/0029.
    "hw.network.attention": [
        "hw.errors", "hw.lib", "hw.network.commands", "hw.network.scratchpad", "hw.attention.core",
        "hw.attention.config",
    ],
    "hw.network.config": [
        "hw.errors", "hw.lib", "hw.network.attention.config", "hw.network.matrix.config",
        "hw.network.scratchpad.shape", "hw.network.vector.config",
    ],
    "hw.network.program": [
        "hw.errors", "hw.lib", "hw.network.graph", "hw.network.commands", "hw.network.compile",
        "hw.network.normalization", "hw.network.config", "hw.network.attention", "hw.network.scratchpad",
        "hw.network.tables", "hw.network.matrix", "hw.network.vector", "hw.scheduler.plan",
        "hw.scheduler.program",
    ],
    "hw.network.check": [
        "hw.errors", "hw.network.commands", "hw.network.config", "hw.network.program",
    ],
    "hw.network.kernel": [
        "hw.errors", "hw.lib", "hw.network.commands", "hw.network.config", "hw.network.program",
        "hw.network.attention",
        "hw.network.scratchpad", "hw.network.tables", "hw.network.matrix", "hw.network.vector",
        "hw.scheduler.config", "hw.scheduler.core", "hw.scheduler.program",
    ],
    "hw.network.driver": [
        "hw.errors", "hw.launch", "hw.network.graph", "hw.network.commands", "hw.network.compile",
        "hw.network.config", "hw.network.program",
    ],
    "hw.network.model": [
        "hw.errors", "hw.board", "hw.lib", "hw.network.commands", "hw.network.config", "hw.network.program",
        "hw.network.kernel", "hw.network.tables", "hw.network.matrix", "hw.network.vector",
        "hw.network.attention", "hw.network.scratchpad", "hw.scheduler.compiled", "hw.scheduler.program",
    ],
    "hw.network.predict": [
        "hw.board", "hw.prediction", "hw.network.commands", "hw.network.config", "hw.network.matrix.timing",
        "hw.network.model", "hw.network.program",
    ],
    "sim.host": ["hw.errors", "hw.board"],
    "sim.golden": ["hw.errors", "hw.scheduler.program.dataflow"],
    "sim.golden.attention": [
        "hw.errors", "hw.attention.driver.formats", "hw.attention.driver.integers",
        "hw.attention.driver.mask", "sim.golden.products",
    ],
    "sim.golden.network": [
        "hw.network.graph.network", "hw.network.graph.integers", "hw.network.graph.sums",
        "hw.network.graph.products", "sim.golden.network_tokens", "sim.golden.normalization",
    ],
    "sim.golden.network_tokens": [
        "hw.attention.driver.formats", "hw.attention.driver.integers", "hw.attention.driver.mask",
        "hw.network.graph.network", "hw.network.graph.norms", "hw.network.graph.sums", "sim.golden.attention",
        "sim.golden.normalization", "sim.golden.program_attention",
    ],
    "sim.golden.normalization": ["hw.network.normalization"],
    "sim.golden.program": [
        "hw.network.graph", "hw.network.compile", "hw.network.commands", "hw.scheduler.plan",
        "sim.golden.normalization", "sim.golden.program_attention", "sim.golden.program_wide",
    ],
    "sim.golden.program_attention": [
        "hw.network.commands", "hw.attention.driver.formats", "hw.attention.driver.integers",
        "hw.attention.driver.mask", "sim.golden.attention",
    ],
    "sim.golden.program_wide": [
        "hw.network.commands", "hw.network.normalization", "sim.golden.normalization",
    ],
    "sim.golden.oram": [
        "hw.oram.config", "hw.oram.core.layouts", "hw.oram.core.touch.times", "hw.oram.model.admission",
    ],
    "sim.build": ["hw", "sim.host"],
    "sim.timing": ["hw.errors", "hw.child", "hw.board", "hw.edge", "hw.lib", "sim.host", "sim.build"],
    "sim.report": ["hw.errors", "sim.host"],
    "sim.report.board_share": ["hw.errors", "hw.board", "hw.config", "hw.registry", "sim.report"],
    "sim.memory": ["hw.errors", "hw.board", "sim.host"],
    "sim.compare": ["hw.errors", "sim.host", "sim.report"],
    "sim.plans": [
        "hw.errors", "hw.board", "hw.config", "hw.scheduler", "sim.host", "sim.report", "sim.compare",
    ],
    "sim.bench": ["hw.errors", "sim.host", "sim.memory"],
    "sim.calibration": [
        "hw.errors", "hw.edge", "hw.board", "hw.lib", "sim.host", "sim.build", "sim.memory",
    ],
    "sim.sweep": [
        "hw", "sim.host", "sim.build", "sim.timing", "sim.memory", "sim.bench", "sim.report", "sim.run",
        "sim.engines", "sim.workloads",
    ],
    # Shapes of ONNX models are inferred by the planner's reader.
    "sim.workloads": ["hw.errors", "hw.edge", "hw.scheduler.graph", "sim.host"],
    "sim.run": ["hw", "sim.host", "sim.build", "sim.report", "sim.memory", "sim.bench", "sim.workloads"],
    "sim.engines": [],
    "sim.api": ["hw", "sim"],
    "sim.cli": ["hw", "sim"],
    "examples": [],
    # Somebody's own designs: public names only, and golden models for their inputs.
    "examples.cores": ["hw.cores", "sim.golden"],
}  # fmt: skip


def gate_doors(own, shared=("hw.errors", "hw.board", "hw.lib", "hw.launch", "hw.engine", "hw.prediction")):
    """Rooms of an engine: config < core < walk < movers < kernel < driver < model; any may be missing."""
    rooms = {f"{own}": [*shared], f"{own}.config": ["hw.errors"]}
    below = ["hw.errors", "hw.lib", f"{own}.config"]
    for name in ("core", "walk", "movers"):
        rooms[f"{own}.{name}"] = [*below]
        below.append(f"{own}.{name}")
    rooms[f"{own}.kernel"] = [*below]
    rooms[f"{own}.driver"] = [*below, f"{own}.kernel", "hw.board", "hw.launch"]
    return rooms | {f"{own}.model": [*below, f"{own}.driver", "hw.board", "hw.prediction"]}


def simulation_doors(own, gates):
    """The one room of an engine's simulation side: all that is shared, and its own gates."""
    engines = {f"hw.{name}" for name in ENGINE_FOLDERS}
    hw = [room for room in DOORS if within(room, "hw") and not any(within(room, name) for name in engines)]
    sim = ("host", "golden", "report", "memory", "compare", "plans", "run", "workloads")
    return {own: [*hw, *(f"sim.{name}" for name in sim), gates]}


def within(name, room):
    return name == room or name.startswith(f"{room}.")


# A new engine's folder needs no line here.
ENGINE_FOLDERS = sorted(path.parent.name for path in (ROOT / "hw").glob("*/engine.py"))
for folder in ENGINE_FOLDERS:
    DOORS = gate_doors(f"hw.{folder}") | DOORS
    DOORS |= simulation_doors(f"sim.engines.{folder}", f"hw.{folder}")
for room in ("hw.oram.model", "hw.oram.movers"):
    DOORS[room] += ["hw.oram.sizing"]
DOORS["sim.engines.network"] += ["hw.scheduler.plan", "hw.scheduler.planner.watch"]
for path in (ROOT / "examples").glob("*/engine.py"):
    own = f"examples.{path.parent.name}"
    DOORS |= simulation_doors(own, own) | gate_doors(f"{own}.engine")


def room_of(name):
    return max((room for room in DOORS if within(name, room)), key=len, default=None)


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", [*modules("hw"), *modules("sim"), *modules("examples")], ids=name_of)
def test_modules_keep_to_the_doors(path):
    """Who may import whom; engines never import each other, and nothing of ``hw`` imports ``sim``."""
    own = name_of(path)
    room = room_of(own)
    if room is None:
        assert own in ("hw", "sim")  # which import nothing
    for name in imports(path):
        if name.split(".")[0] in ("hw", "sim", "examples") and not (room and within(name, room)):
            assert any(within(name, other) for other in DOORS[room]), f"{own} imports {name}"


def test_no_module_imports_itself_by_way_of_others():
    names = {name_of(path): path for path in [*modules("hw"), *modules("sim")]}
    imported = {own: {name for name in imports(path) if name in names} for own, path in names.items()}
    order = graphlib.TopologicalSorter(imported)
    order.prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("package", ["hw", "sim"])
def test_no_folder_has_to_be_scrolled(package):
    for folder in {path.parent for path in modules(package)}:
        stems = [path.stem for path in folder.glob("*.py")]
        assert len(stems) <= 21, f"{folder} has {len(stems)} modules"
        for stem in stems:
            assert f"{stem}s" not in stems, f"{folder}: {stem} and {stem}s"


@pytest.mark.parametrize("package", ["hw", "sim", "examples"])
def test_every_module_imports_and_keeps_its_word(package):
    root = importlib.import_module(package)
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        if info.name.startswith("sim.bench."):
            continue  # loaded by cocotb inside the simulator only
        if any(name.split(".")[0] == "ortools" for name in imports(path_of(info.name))):
            # Its libraries and those of HiGHS cannot be in one process.
            subprocess.run([sys.executable, "-c", f"import {info.name}"], cwd=ROOT, check=True)
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{info.name}.__all__ names {name}"


def test_nothing_of_one_machine_is_in_the_tree():
    machine_path = re.compile(r"[\"' =(]/(root|work|farm|home)/")
    index_host = re.compile(r"(pypi\.|pythonhosted|/simple/|registry\.npmjs)")
    for path in tracked_files():
        if path == Path(__file__):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for pattern in (machine_path, index_host):
            assert not (found := pattern.search(text)), f"{path}: {found.group()}"


def test_constraints_are_names_versions_and_hashes_only():
    lines = "".join((ROOT / name).read_text() for name in ("constraints.txt", "docs/constraints.txt"))
    for line in lines.splitlines():
        assert re.fullmatch(r"[a-z0-9.-]+==\S+( ; .*?)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_files_stay_small():
    long = {
        str(path.relative_to(ROOT)): lines
        for package in ("hw", "sim", "tests", "examples")
        for path in modules(package)
        if (lines := len(path.read_text().splitlines())) > (450 if package == "tests" else 400)
    }
    assert not long


@pytest.mark.parametrize("package", ["hw", "sim"])
def test_functions_stay_short(package):
    long = {
        f"{path.relative_to(ROOT)}: {node.name}": lines
        for path in modules(package)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and (lines := node.end_lineno - node.lineno + 1) > 100
    }
    assert not long


def signals(node):
    """Return the calls among the values of a tuple that make signals without a name of their own."""
    calls = [value for value in node.elts if isinstance(value, ast.Call)]
    return [
        call
        for call in calls
        if ast.unparse(call.func).endswith(("Signal", "Signal.like", ".write_port", ".read_port"))
        and not any(keyword.arg == "name" for keyword in call.keywords)
    ]


@pytest.mark.parametrize("package", ["hw", "examples"])
def test_signals_are_named_in_waves(package):
    """Amaranth names a signal after its variable; in a tuple the last alone has one, in Python 3.13 none."""
    nameless = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules(package)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) and signals(node.value)
    ]
    assert not nameless


@pytest.mark.parametrize("package", ["hw", "sim"])
def test_members_and_parameters_are_said_where_they_are_declared(package):
    section = re.compile(r"^ *(Members|Parameters|Attributes)\b.*\n *-{3,}$", re.MULTILINE)
    assert not [path for path in modules(package) if section.search(path.read_text())]


#: Words of a sentence on average, share of sentences over 25 words, "what" and "give" in 1,000 words.
WORDS = {
    "docs": (17.0, 0.08, 2.0),
    "hw": (17.0, 0.03, 2.0),
    "sim": (17.0, 0.03, 2.0),
}


@pytest.mark.parametrize("folder", sorted(WORDS))
def test_sentences_are_short_and_name_their_nouns(folder):
    """`python -m tests.support.words --worst 20 FOLDER` lists the sentences to mend."""
    length, long_share, vague = WORDS[folder]
    prose = prose_of([ROOT / folder])
    assert prose.words_a_sentence <= length
    assert prose.long_share <= long_share
    assert prose.vague_per_thousand <= vague
