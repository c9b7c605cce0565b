"""Cycles and bytes of a program without a simulation; `hw.network.engine.NetworkEngine.predict`."""

from __future__ import annotations

from hw.board import Board
from hw.network.commands import Core, MatrixCommand
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.matrix.timing import sweep_cycles
from hw.network.model.image import image_size
from hw.network.model.layers import weight_bytes
from hw.network.model.overlap import overlap
from hw.network.model.timeline import Bound, timeline
from hw.network.program.barriers import is_barriers
from hw.network.program.image import needs
from hw.network.program.program import NetworkProgram
from hw.prediction import Prediction


def predict(workload: NetworkProgram, config: NetworkConfig, board: Board) -> Prediction:
    """Predict the cycles of a program by `hw.network.model`, and count its bytes.

    Raises `InputError` when the program does not fit the configuration.
    """
    program = workload
    needs(program, config)
    attention = any(step.core is Core.ATTENTION for step in program.steps)
    told = _barriers if is_barriers(program) and not attention else _overlap
    cycles, details = told(program, config, board)
    read, write = (
        WORD_BYTES * sum(each.moved_words for each in some) for some in (program.reads, program.writes)
    )
    packed = sum(each.nbytes for each in program.passes)
    homes = _home_bytes(program)
    return Prediction(
        cycles=cycles,
        read_bytes={
            "program": image_size(program, lanes=config.lanes).bytes,
            "tensors": read,
            "weights": sum(weight_bytes(program, step) for step in program.steps),
        },
        write_bytes={"tensors": write},
        useful_macs=sum(step.macs for step in program.steps),
        mac_slots_per_cycle=config.matrix.inputs * config.columns,
        compulsory_bytes=program.parameter_bytes + homes,
        memory_bytes_per_cycle=memory_bytes_per_cycle(config, board),
        details={
            "steps": len(program.steps),
            "transfers": len(program.reads) + len(program.writes),
            "avoidable_bytes": read + write - homes,
            "packet_bytes": packed,
            **details,
        },
    )


def _home_bytes(program: NetworkProgram) -> int:
    """Return the bytes of inputs, constants and outputs; of a table, those of the rows that are read."""
    tables = {WORD_BYTES * each.gathered.table: each.words for each in program.reads if each.gathered}
    homes = (*program.inputs, *program.constants, *program.outputs)
    whole = sum(home.size_bytes for home in homes if home.address not in tables)
    return whole + WORD_BYTES * sum(tables.values())


def _barriers(
    program: NetworkProgram, config: NetworkConfig, board: Board
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the cycles by cause, and details, of steps one after the other."""
    played = timeline(program, config, board)
    matrix = [each for each in played.steps if isinstance(each.step.command, MatrixCommand)]
    vector = [each for each in played.steps if not isinstance(each.step.command, MatrixCommand)]
    cycles = {
        "cycles_busy": played.total(Bound.ARRAY) + played.total(Bound.VECTOR),
        "cycles_stall_load": played.load_cycles,
        "cycles_stall_write": played.total(Bound.WRITES),
        "cycles_stall_read": played.total(Bound.READS),
        "cycles_stall_pixels": sum(each.first for each in matrix),
        "cycles_stall_weights": played.total(Bound.WEIGHTS),
        "cycles_stall_room": sum(each.room for each in matrix),
        "cycles_stall_vector_read": sum(each.first for each in vector),
        "cycles_stall_vector_write": 0,
        "cycles_stall_drain": played.drain_cycles,
    }
    cycles["cycles_idle"] = played.cycles - sum(cycles.values())
    details = {
        "array_cycles": played.total(Bound.ARRAY),
        "vector_cycles": played.total(Bound.VECTOR),
        "pipeline_cycles": played.total(Bound.PIPELINE),
    }
    return cycles, details


def _overlap(
    program: NetworkProgram, config: NetworkConfig, board: Board
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the same of steps that overlap; cycles without a working core count as busy."""
    played = overlap(program, config, board)
    causes = ("write", "pixels", "weights", "room", "vector_read", "vector_write")
    cycles = {
        "cycles_busy": played.cycles - played.load_cycles - played.read_cycles - played.drain_cycles,
        "cycles_stall_load": played.load_cycles,
        "cycles_stall_read": played.read_cycles,
        **{f"cycles_stall_{cause}": 0 for cause in causes},
        "cycles_stall_drain": played.drain_cycles,
        "cycles_idle": 0,
    }
    steps = [each.command for each in program.steps if isinstance(each.command, MatrixCommand)]
    return cycles, {"array_cycles": sum(sweep_cycles(each, config.matrix) for each in steps)}


def memory_bytes_per_cycle(config: NetworkConfig, board: Board) -> float:
    """Return the bytes that all memory ports move in a cycle, at the memory's realistic peak."""
    ports = 1 + config.weight_ports
    channels = min(ports, board.memory.channels)
    return min(ports * config.port_bytes, channels * board.channel_bytes_per_cycle)
