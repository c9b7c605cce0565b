"""Launches of a drawn program in one simulation, held to the golden model and to the prediction."""

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from hw.board import load_board
from hw.conv.model.launch import predict_launch
from hw.conv.movers.descriptor import DESCRIPTOR_BYTES
from hw.registry import find_engine
from sim.build.design import kernel_design
from sim.engines.conv.adapter import ADAPTER
from sim.engines.conv.execute import execute
from sim.engines.conv.job import NetworkJob
from sim.run.launch import simulate
from tests.support.conv.sequences import Drawing

_ENTRY_BYTES = 8


@dataclass(frozen=True)
class Seen:
    """A launch: its jobs, counters and log, and their predictions."""

    names: list
    counters: dict
    log: list
    predicted: dict
    predicted_log: tuple
    open_ended: bool

    @property
    def cycles(self):
        return self.counters["cycles_total"]

    @property
    def predicted_cycles(self):
        return sum(self.predicted.values())


def run(config, board, seed, launches, directory, *, memory="model", control_only=False, **changes):
    """Simulate ``launches`` drawn by ``seed`` without a reset between them; return the record of each.

    ``board`` says how memory behaves; gates, and the simulator, are those of the board that ships. Raises
    `AssertionError` where a map is not the golden model's, or a reset came between two launches.
    """
    drawing = Drawing(seed, config, **changes)
    counts = [drawing.launch() for _ in range(launches)]
    engine, width = find_engine("conv"), config.port_width(board.memory.port_data_width)
    program = drawing.program().at(width)
    firsts = [0, *accumulate(counts)]
    launch = ADAPTER.launch(NetworkJob(program=program), config, board)
    launch = replace(
        launch,
        scalars={"job_count": counts[0]},
        then=tuple(
            {"job_count": count, "jobs": DESCRIPTOR_BYTES * first, "log": _ENTRY_BYTES * first}
            for first, count in zip(firsts[1:], counts[1:], strict=False)
        ),
    )
    predicted = [predict_launch(config, board, program.jobs[a:b], first=not a) for a, b in pairwise(firsts)]
    simulated = simulate(
        kernel_design(engine, config, load_board(board.name), control_only=control_only),
        launch,
        memory_board=board,
        directory=directory / "simulation",
        expected_cycles=sum(sum(each.counters.values()) for each in predicted),
        memory_mode=memory,
        seed=seed,
    )
    answer = simulated.answer
    assert answer.resets_between_calls == 0
    assert len(answer.calls) == launches
    if not control_only:
        compare(program, [simulated.buffers[f"maps{port}"] for port in range(config.ports)])
    log = simulated.buffers["log"].view("<u8").tolist()
    return [
        Seen(
            names=[step.name for step in program.steps[a:b]],
            counters=call.counters,
            log=log[a:b],
            predicted=dict(prediction.counters),
            predicted_log=prediction.log,
            open_ended=any(job.route.tap is not None and job.route.tap.buffer.gather for job in jobs),
        )
        for (a, b), call, prediction in zip(pairwise(firsts), answer.calls, predicted, strict=True)
        for jobs in [program.jobs[a:b]]
    ]


def compare(program, arenas):
    """Compare every map with the golden model, and all other memory with its former content."""
    golden = execute(program)
    wrong = {
        step.name: int(np.count_nonzero(golden[step.result] != program.read(step.result, arenas)))
        for step in program.steps
    }
    assert not any(wrong.values()), {name: count for name, count in wrong.items() if count}
    np.testing.assert_array_equal(program.unwritten(arenas), program.unwritten(program.arenas()))
