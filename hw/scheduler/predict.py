"""Cycles and bytes of a program without a simulation; `hw.scheduler.engine.SchedulerEngine.predict`."""

from hw.board import Board
from hw.prediction import Prediction
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.driver.workload import SchedulerWorkload
from hw.scheduler.graph.graph import TensorKind
from hw.scheduler.program.image import encode
from hw.scheduler.program.timing.memory import TimingModel


def predict(workload: SchedulerWorkload, config: SchedulerConfig, board: Board) -> Prediction:
    """Count the program's transfers, and simulate its cycles with `hw.scheduler.program.timing.timeline`.

    Raises `InputError` when the program does not fit the configuration.
    """
    program = workload.program
    config.check_program(program)
    assert program.dataflow is not None  # compulsory bytes follow from it
    loaded = 0 if config.program is not None else len(encode(program))
    model = TimingModel.of(board)
    # Imported here: listing engines, or running another one, must not load Numba.
    from hw.scheduler.program.timing import timeline

    played = timeline.predict(program, model, image_words=loaded // config.word_bytes)
    compulsory = sum(
        -(-tensor.size_bytes // config.word_bytes) * config.word_bytes
        for tensor in program.dataflow.tensors
        if tensor.off_chip_first or tensor.kind is TensorKind.OUTPUT
    )
    return Prediction(
        cycles={
            "cycles_busy": played.cycles_total - played.exposed_cycles - played.load_cycles,
            "cycles_stall_load": played.load_cycles,
            "cycles_stall_transfer": played.exposed_cycles,
            "cycles_idle": 0,
        },
        read_bytes={"program": loaded, "tensors": program.read_bytes},
        write_bytes={"tensors": program.write_bytes},
        useful_macs=0,
        mac_slots_per_cycle=0,
        compulsory_bytes=compulsory,
        memory_bytes_per_cycle=min(2 * config.word_bytes, board.channel_bytes_per_cycle),
        # Steps run one after the other; the slowest core decides.
        least_compute_cycles=sum(max(core.compute_cycles for core in step.cores) for step in program.steps),
        details={
            "steps": len(program.steps),
            "transfers": len(program.reads) + len(program.writes),
            "avoidable_bytes": program.read_bytes + program.write_bytes - compulsory,
            "scratchpad_used_bytes": program.scratchpad_words * config.word_bytes,
            "predicted_exposed_cycles": played.exposed_cycles,
            "predicted_load_cycles": played.load_cycles,
            "program_bytes": loaded,
        },
    )
