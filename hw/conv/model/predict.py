"""The prediction of a convolution launch; `hw.conv.engine.ConvEngine.predict`."""

from itertools import pairwise

from hw.board import Board
from hw.conv.config import ConvConfig
from hw.conv.driver.plan import PlannedJob
from hw.conv.driver.workload import ConvWorkload
from hw.conv.model.launch import predict_launch
from hw.conv.model.traffic import compulsory_bytes, read_bytes, write_bytes
from hw.conv.movers.movers import side_port
from hw.errors import InputError
from hw.prediction import Prediction

#: Most sweeps of a tile over a block in a launch.  Each takes a prediction about 330 bytes and 3 us.
MOST_SWEEPS = 1 << 22


def planned(workload: ConvWorkload, config: ConvConfig, board: Board) -> list[PlannedJob]:
    """Plan the jobs of a launch.

    Raises `InputError` when the configuration cannot do a layer, or the launch is too long to be predicted.
    """
    width = config.port_width(board.memory.port_data_width)
    jobs = [job.plan(config, beat_bits=width) for job in workload.jobs]
    sweeps = sum(
        job.blocks.blocks * len(job.route.point.tiles)
        for job in jobs
        if job.blocks is not None and job.route.point is not None
    )
    if sweeps > MOST_SWEEPS:
        legal = f"at most {MOST_SWEEPS:,}; split the layer by pixels or by output channels"
        raise InputError("sweeps of weight tiles over blocks of pixels", sweeps, legal)
    return jobs


def predict(workload: ConvWorkload, config: ConvConfig, board: Board) -> Prediction:
    """Predict cycles and count bytes; useful are the multiply-accumulates of the layers.

    Raises `InputError` as `planned` does.
    """
    width = config.port_width(board.memory.port_data_width)
    jobs = planned(workload, config, board)
    launch = predict_launch(config, board, jobs)
    ports = side_port(config) + 1
    layers = [layer for job in workload.jobs for layer in job.layers]
    return Prediction(
        cycles=launch.counters,
        read_bytes=read_bytes(config, jobs),
        write_bytes=write_bytes(config, jobs),
        useful_macs=sum(layer.useful_macs for layer in layers),
        mac_slots_per_cycle=config.inputs * config.outputs + config.lanes * config.taps,
        compulsory_bytes=compulsory_bytes(workload, weight_bits=config.weight_bits),
        memory_bytes_per_cycle=min(
            ports * width / 8, min(ports, board.memory.channels) * board.channel_bytes_per_cycle
        ),
        job_cycles=tuple(end - begin for begin, end in pairwise((0, *launch.log))),
        # Gathered samples depend on the offsets.
        open_ended=any(job.route.tap is not None and job.route.tap.buffer.gather for job in jobs),
        details={"jobs": len(jobs)},
    )
