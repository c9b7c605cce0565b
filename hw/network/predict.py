"""Cycles and bytes of a program without a simulation; `hw.network.engine.NetworkEngine.predict`."""

from __future__ import annotations

from hw.board import Board
from hw.network.commands import MatrixCommand
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.model.layers import weight_bytes
from hw.network.model.timeline import Bound, timeline
from hw.network.program.image import needs
from hw.network.program.program import NetworkProgram
from hw.prediction import Prediction


def predict(workload: NetworkProgram, config: NetworkConfig, board: Board) -> Prediction:
    """Predict the cycles of a program by `hw.network.model.timeline`, and count its bytes.

    Raises `InputError` when the program does not fit the configuration.
    """
    program = workload
    needs(program, config)
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
    read, write = (WORD_BYTES * sum(each.words for each in some) for some in (program.reads, program.writes))
    packed = sum(each.nbytes for each in program.passes)
    homes = (*program.inputs, *program.constants, *program.outputs)
    compulsory = program.parameter_bytes + sum(home.size_bytes for home in homes)
    return Prediction(
        cycles=cycles,
        read_bytes={
            "program": played.image.bytes,
            "tensors": read,
            "weights": sum(weight_bytes(program, step) for step in program.steps),
        },
        write_bytes={"tensors": write},
        useful_macs=sum(step.macs for step in program.steps),
        mac_slots_per_cycle=config.matrix.inputs * config.columns,
        compulsory_bytes=compulsory,
        memory_bytes_per_cycle=memory_bytes_per_cycle(config, board),
        details={
            "steps": len(program.steps),
            "transfers": len(program.reads) + len(program.writes),
            "avoidable_bytes": read + write - sum(home.size_bytes for home in homes),
            "packet_bytes": packed,
            "array_cycles": played.total(Bound.ARRAY),
            "vector_cycles": played.total(Bound.VECTOR),
            "pipeline_cycles": played.total(Bound.PIPELINE),
        },
    )


def memory_bytes_per_cycle(config: NetworkConfig, board: Board) -> float:
    """Return the bytes that all memory ports move in a cycle, at the memory's realistic peak."""
    ports = 1 + config.weight_ports
    channels = min(ports, board.memory.channels)
    return min(ports * config.port_bytes, channels * board.channel_bytes_per_cycle)
