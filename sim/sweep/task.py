"""One task of a sweep: a fidelity, an engine's configuration and, except for synthesis, a workload."""

import functools
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter

import hw
import sim.bench
import sim.build
import sim.engines
import sim.memory
import sim.run
import sim.timing
from hw.board import Board, load_board
from hw.config import check_fits, config_dict
from hw.edge import Document, accepted, validate
from hw.energy.launch import predicted_microjoules
from hw.errors import LoomworkError
from hw.launch import Tensors
from hw.registry import find_engine
from sim.host.digest import key_of, source_digest
from sim.report.report import ADAPTER as REPORT
from sim.run.run import find_adapter
from sim.sweep.figures import measured_figures, predicted_figures
from sim.sweep.points import OF_SYNTHESIS, Evaluation, Fidelity
from sim.sweep.spec import WorkloadSpec

#: Packages that each fidelity's results depend on.
_SOURCES: Mapping[Fidelity, tuple[ModuleType, ...]] = {
    "prediction": (hw, sim.engines),
    "control": (hw, sim.engines, sim.memory, sim.bench, sim.run),
    "full": (hw, sim.engines, sim.memory, sim.bench, sim.run),
    "synthesis": (hw, sim.build, sim.timing),
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task; its result is a `sim.sweep.points.Evaluation`."""

    fidelity: Fidelity
    engine: str
    board: str
    config: Mapping[str, Any]  #: Plain values, legal ones.
    workload: str = ""
    asked: WorkloadSpec | None = None  #: The workload; None where the engine's gates are asked for.
    seed: int = 0
    memory: str = "model"

    @functools.cached_property
    def key(self) -> str:
        """Equal for tasks with the same result."""
        asked = "" if self.asked is None else _content(self.asked)
        simulated = (str(self.seed), self.memory) if self.fidelity in ("control", "full") else ()
        config = json.dumps(self.config, sort_keys=True)
        code = source_digest(*_SOURCES[self.fidelity])
        # Names are part of the answer.
        names = (self.fidelity, self.engine, self.workload)
        return key_of([*names, _board_digest(self.board), config, asked, code, *simulated])

    @property
    def title(self) -> str:
        """Title for progress lines."""
        return f"{self.fidelity} of {self.workload or self.engine}"


def code_digest() -> str:
    """Return a digest of all code that results depend on."""
    return key_of(source_digest(*packages) for packages in _SOURCES.values())


def legal_config(engine_name: str, board: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as plain values; fields that are not chosen have the board's defaults.

    Raises `InputError` for the first field that is wrong.
    """
    default = _default(engine_name, board)
    document = Document(path=Path(engine_name), data={**default, **chosen})
    adapter = _configs(engine_name)
    try:
        return dict(adapter.dump_python(accepted(document, adapter), mode="json"))
    except ValueError:
        return dict(adapter.dump_python(validate(document, adapter), mode="json"))


def evaluate(task: Task, directory: Path | None = None) -> Evaluation:
    """Evaluate a task; an error becomes the evaluation's failure.

    ``directory`` gets a folder with the files of a failed simulation.
    """
    began = time.monotonic()
    kept = directory / task.key if directory else Path(tempfile.mkdtemp(prefix="loomwork-"))
    failure = ""
    figures: dict[str, float] = {}
    document: dict[str, Any] = {}
    try:
        figures, document = _EVALUATIONS[task.fidelity](task, kept)
    except LoomworkError as error:
        failure = str(error)
    except (Exception, MemoryError) as error:
        failure = f"{type(error).__name__}: {error}"
    if not failure or directory is None:
        shutil.rmtree(kept, ignore_errors=True)
    return Evaluation(
        fidelity=task.fidelity,
        engine=task.engine,
        workload=task.workload,
        figures=figures,
        failure=failure,
        seconds=time.monotonic() - began,
        document=document,
    )


def refusal(task: Task) -> str:
    """Return why a prediction would be refused, without predicting; nothing where it would not."""
    try:
        engine, board, config = _parts(task)
        check_fits(engine, config, board)
        engine.check(_workload(task, config), config, board)
    except LoomworkError as error:
        return str(error)
    return ""


_Answer = tuple[dict[str, float], dict[str, Any]]


def _predict(task: Task, directory: Path) -> _Answer:
    engine, board, config = _parts(task)
    check_fits(engine, config, board)
    if task.asked is None:
        return dict(engine.resources(config, board).items()), {"user": dict(board.user.items())}
    found = engine.predict(_workload(task, config), config, board)
    document = {name: dict(getattr(found, name)) for name in ("cycles", "read_bytes", "write_bytes")}
    microjoules = predicted_microjoules(engine, config, board, found)
    return predicted_figures(found, board.clock_mhz) | {"microjoules": microjoules}, document


def _simulate(task: Task, directory: Path) -> _Answer:
    from sim.run.run import run

    engine, board, config = _parts(task)
    result = run(
        task.engine,
        config,
        board,
        _tensors(task, config),
        directory=directory,
        seed=task.seed,
        memory_mode=task.memory,
        # Engines without data cells are simulated whole.
        control_only=task.fidelity == "control" and bool(engine.data_cells),
    )
    if result.mismatches:
        raise LoomworkError(result.mismatches[0])
    return measured_figures(result.report), dict(REPORT.dump_python(result.report, mode="json"))


def _synthesize(task: Task, directory: Path) -> _Answer:
    from sim.build.design import kernel_design
    from sim.build.synthesis import synthesize
    from sim.timing.kernel import kernel_timing

    engine, board, config = _parts(task)
    # With source lines, as in `loomwork timing`: both share mapped netlists.
    kernel = kernel_design(engine, config, board, sources=True)
    counted = synthesize(kernel.verilog, kernel.top_name)
    timed = kernel_timing(kernel.verilog, kernel.top_name, board, regions=kernel.regions)
    slack = {name: getattr(timed, name) for name in OF_SYNTHESIS}
    parts = [asdict(part) for part in counted.parts]
    return {**dict(counted.total.items()), **slack}, {"user": dict(board.user.items()), "parts": parts}


_EVALUATIONS = {"prediction": _predict, "control": _simulate, "full": _simulate, "synthesis": _synthesize}


def _parts(task: Task) -> tuple[Any, Board, Any]:
    engine, board = find_engine(task.engine), _board(task.board)
    document = Document(path=Path(task.engine), data=dict(task.config))
    return engine, board, accepted(document, _configs(task.engine))


def _workload(task: Task, config: Any) -> Any:
    assert task.asked is not None
    if task.asked.shape:
        return validate(Document(path=Path("shape"), data=dict(task.asked.shape)), _shapes(task.engine))
    adapter = find_adapter(task.engine)
    return adapter.workload(adapter.control_job(_tensors(task, config), config), config)


def _tensors(task: Task, config: Any) -> Tensors:
    assert task.asked is not None
    adapter = find_adapter(task.engine)
    if task.asked.shape:
        return adapter.tensors(_workload(task, config), config, seed=task.seed)
    files = {name: Path(path) for name, path in task.asked.files.items()}
    return adapter.read_files(files, config, seed=task.seed)


@functools.cache
def _configs(engine: str) -> TypeAdapter[Any]:
    return TypeAdapter(find_engine(engine).config_type)


@functools.cache
def _shapes(engine: str) -> TypeAdapter[Any]:
    return TypeAdapter(find_engine(engine).workload_type)


@functools.cache
def _board(name: str) -> Board:
    return load_board(name)


@functools.cache
def _default(engine_name: str, board: str) -> dict[str, Any]:
    return config_dict(find_engine(engine_name).default_config(_board(board)))


@functools.cache
def _board_digest(name: str) -> str:
    return key_of([json.dumps(asdict(_board(name)), sort_keys=True)])


@functools.cache
def _file_digest(path: str) -> str:
    """Return a digest of a file, or of all files in a folder by their names."""
    root = Path(path)
    if root.is_dir():
        files = sorted(each for each in root.rglob("*") if each.is_file())
        return key_of(f"{each.relative_to(root)}\0{_file_digest(str(each))}" for each in files)
    return hashlib.sha256(root.read_bytes()).hexdigest()


def _content(asked: WorkloadSpec) -> str:
    files = {name: _file_digest(path) for name, path in asked.files.items()}
    return json.dumps([asked.shape, files], sort_keys=True)
