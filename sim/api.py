"""The functions behind the command line, for notebooks and scripts; results are dataclasses.

`frame` makes a pandas table of any of them; only `frame` needs pandas.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from hw.board import Board, load_board
from hw.config import check_fits, config_of
from hw.edge import Document, validate
from hw.energy import Energy
from hw.energy import energy as energy_of
from hw.energy.launch import predicted_activity
from hw.launch import Tensors
from hw.prediction import Prediction
from hw.registry import find_engine
from sim.report.report import Report
from sim.report.table import figures_of
from sim.run.result import RunResult
from sim.run.run import run
from sim.sweep.figures import predicted_figures
from sim.sweep.input.spec_file import read_spec
from sim.sweep.results import SweepResults
from sim.sweep.rows import rows

if TYPE_CHECKING:
    import pandas

    from hw.scheduler.plan.plan import Plan

#: A configuration or a workload: its dataclass, or its fields.
Fields = Any


def predict(engine: str, workload: Fields, config: Fields = None, board: str | Board = "u55c") -> Prediction:
    """Predict the cycles and bytes of a workload with an engine's analytic model.

    Fields that ``config`` leaves out have the board's defaults.

    >>> shape = {"heads": 2, "queries": (64,), "keys": (64,), "query_size": 64, "value_size": 64}
    >>> prediction = predict("attention", shape, {"rows": 8})
    >>> prediction.useful_macs == 2 * 2 * 64 * 64 * 64
    True
    >>> prediction.cycles_total > prediction.bound_cycles
    True

    Raises `InputError` when a field is wrong, or the engine does not fit the board.
    """
    chosen, on = find_engine(engine), _board(board)
    found = config_of(chosen, config, on)
    check_fits(chosen, found, on)
    return chosen.predict(_made(chosen.workload_type, workload, "workload"), found, on)


def energy(engine: str, workload: Fields, config: Fields = None, board: str | Board = "u55c") -> Energy:
    """Predict the energy of a workload by source, each with its range.

    >>> shape = {"heads": 2, "queries": (64,), "keys": (64,), "query_size": 64, "value_size": 64}
    >>> found = energy("attention", shape, {"rows": 8})
    >>> found.total.low < found.total.value < found.total.high < 2 * found.total.low
    True

    Raises `InputError` as `predict` does.
    """
    chosen, on = find_engine(engine), _board(board)
    found = config_of(chosen, config, on)
    prediction = predict(engine, workload, found, on)
    return energy_of(predicted_activity(chosen, found, on, prediction))


def simulate(
    engine: str,
    tensors: Tensors,
    config: Fields = None,
    board: str | Board = "u55c",
    *,
    control_only: bool = False,
    seed: int = 0,
    memory: str = "model",
) -> RunResult:
    """Simulate an engine's generated gates on tensors and compare with the golden model.

    With ``control_only`` only cycles and bytes are measured, much faster.  See `sim.run.run.run`.

    >>> from pathlib import Path
    >>> from hw.config import load_config
    >>> from sim.run.tensors import load_tensors
    >>> config = load_config(find_engine("attention"), "examples/attention.yaml", load_board("u55c"))
    >>> result = simulate("attention", load_tensors(Path("examples/in.npz")), config)
    >>> result.bit_exact, result.report.cycles.cycles_total > 0, sorted(result.outputs)
    (True, True, ['o', 'o_int', 'o_scale'])
    """
    on = _board(board)
    with tempfile.TemporaryDirectory(prefix="loomwork-") as directory:
        return run(
            engine,
            config_of(find_engine(engine), config, on),
            on,
            tensors,
            directory=Path(directory),
            control_only=control_only,
            seed=seed,
            memory_mode=memory,
        )


def sweep(
    spec: str | Path, database: str | Path, *, workers: int = 0, memory_gib: float = 2.0
) -> SweepResults:
    """Run a sweep, or resume it, as ``loomwork sweep`` does.

    ``workers``: processes, each with ``memory_gib`` of memory; 0 for one a processor.
    `sim.sweep.results.load_sweep` only reads a database.

    >>> import tempfile
    >>> from pathlib import Path
    >>> spec = '''
    ... boards: [u55c]
    ... engines:
    ...   attention:
    ...     parameters: {rows: [8, 16]}
    ...     workloads:
    ...       heads: {shape: {heads: 2, queries: [64], keys: [64], query_size: 64, value_size: 64}}
    ... objectives: {cycles: min, dsp: min}
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.yaml"
    ...     _ = path.write_text(spec)
    ...     results = sweep(path, Path(folder) / "rows.db", workers=1)
    >>> [point.point.parameters["attention.rows"] for point in results.front]
    [8, 16]
    """
    from sim.sweep.executor import LocalExecutor
    from sim.sweep.sweep import run_sweep

    path = Path(database)
    executor = LocalExecutor(
        workers or len(os.sched_getaffinity(0)),
        memory_bytes=int(memory_gib * 2**30),
        directory=path.absolute().with_name(f"{path.stem}-failed"),
    )
    return run_sweep(read_spec(Path(spec)), path, executor)


def plan(model: Any, scratchpad: str, board: str | Board = "u55c", **options: Any) -> Plan:
    """Plan a network for a scratchpad; see `hw.scheduler.plan_model.plan_model`.

    >>> found = plan("minilm_layer", "M_H")
    >>> found.certificate.claim, found.totals.avoidable_bytes
    ('optimal', 0)
    """
    from hw.scheduler.plan_model import plan_model

    return plan_model(model, scratchpad, board=_board(board), **options)


def frame(
    found: SweepResults | Plan | Iterable[Any] | Mapping[str, Any], clock_mhz: float = 300.0
) -> pandas.DataFrame:
    """Return results as a table with units in the names of its columns.

    ``found``: a sweep (a row a design), a plan (a row a step), or predictions, reports or results of runs in
    a list or by name (a row each). ``clock_mhz`` turns the cycles of predictions into time.

    >>> shape = {"heads": 2, "queries": (64,), "keys": (64,), "query_size": 64, "value_size": 64}
    >>> predictions = {rows: predict("attention", shape, {"rows": rows}) for rows in (8, 16)}
    >>> table = frame(predictions, clock_mhz=300.0)
    >>> list(table.index), bool((table.microseconds == table.cycles / 300).all())
    ([8, 16], True)
    """
    import pandas

    if isinstance(found, SweepResults):
        return pandas.DataFrame(list(rows(found))).set_index("point")
    if hasattr(found, "steps"):
        return pandas.DataFrame(
            [{"step": n, **asdict(step)} for n, step in enumerate(found.steps)]
        ).set_index("step")
    named = found if isinstance(found, Mapping) else dict(enumerate(found))
    table = [_row(each, clock_mhz) for each in named.values()]
    return pandas.DataFrame(table, index=pandas.Index(named.keys(), name="run"))


def _row(found: Prediction | Report | RunResult, clock_mhz: float) -> Mapping[str, Any]:
    if isinstance(found, Prediction):
        return {**predicted_figures(found, clock_mhz), **found.cycles}
    return figures_of(found.report if isinstance(found, RunResult) else found)


def _made(kind: type[Any], given: Fields, name: str) -> Any:
    if isinstance(given, kind):
        return given
    return validate(Document(path=Path(name), data=dict(given)), TypeAdapter(kind))


def _board(board: str | Board) -> Board:
    return load_board(board) if isinstance(board, str) else board
