"""Bytes moved by a launch, over all ports."""

import math
from collections.abc import Sequence

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.plan import PlannedJob
from hw.conv.driver.workload import ConvJob, ConvWorkload, JobMaps, MapName
from hw.conv.movers.descriptor import used_bytes
from hw.conv.movers.side_port import LOG_BYTES


def read_bytes(config: ConvConfig, jobs: Sequence[PlannedJob]) -> dict[str, int]:
    """Add up the bytes that all jobs read, by stream."""
    shuffled = [job for job in jobs if job.route.rearrangement.shuffle]
    return {
        "maps": sum(_read(config, job, "in") for job in jobs),
        "bypass": sum(_read(config, job, "bypass") for job in shuffled),
        "weights": sum(
            job.fields.get("weight_bytes", 0)
            + job.fields.get("tile_bytes", 0) * job.fields.get("tile_repeats", 0)
            for job in jobs
        ),
        "offsets": sum(job.fields.get("offset_bytes", 0) for job in jobs),
        "descriptors": len(jobs) * used_bytes(config),
    }


def write_bytes(config: ConvConfig, jobs: Sequence[PlannedJob]) -> dict[str, int]:
    """Add up the bytes that all jobs write, by stream."""
    return {
        "maps": sum(
            job.fields["out_map_rows"] * job.fields[f"out_bytes_{port}"]
            for job in jobs
            for port in range(config.ports)
        ),
        "log": len(jobs) * LOG_BYTES,
    }


def compulsory_bytes(
    workload: ConvWorkload, *, weight_bits: int, offset_bytes: int = 2, channel_bytes: int = 8
) -> int:
    """Return the bytes that any schedule of a launch moves.

    They are maps that no job writes, weights, offsets and masks, each once in, and maps that no job reads,
    each once out.

    * ``weight_bits``: of a weight.
    * ``offset_bytes``: of one coordinate of an offset.
    * ``channel_bytes``: bias and scale of an output channel.
    """
    layers = [layer for job in workload.jobs for layer in job.layers]
    weights = sum(
        -(-layer.useful_weights * weight_bits // 8) + channel_bytes * layer.outputs for layer in layers
    )
    return weights + sum(_offset_bytes(layer, offset_bytes) for layer in layers) + _map_bytes(workload)


def _offset_bytes(layer: ConvLayer, offset_bytes: int) -> int:
    """Count the bytes of offsets and masks, or of the weights that compute offsets: a byte each."""
    numbers = {Offsets.NONE: 0, Offsets.SQUARE: 1, Offsets.FREE: 2 * layer.offset_group * layer.taps}
    if layer.dot:
        return numbers[layer.offsets] * layer.channels
    pixel = offset_bytes * numbers[layer.offsets] + layer.masked * layer.offset_group * layer.taps
    return math.prod(layer.out_size) * pixel


def _map_bytes(workload: ConvWorkload) -> int:
    """Count the bytes of the launch's first maps and of its last ones."""
    maps = workload.maps or [
        JobMaps(source=MapName(name=f"x{n}"), result=f"y{n}", bypass=MapName(name=f"b{n}"))
        for n in range(len(workload.jobs))
    ]
    written = {each.result for each in maps}
    read: dict[MapName, int] = {}
    for job, each in zip(workload.jobs, maps, strict=True):
        first, last = job.layers[0], job.layers[-1]
        read[each.source] = first.channels * first.rows * first.columns
        if job.rearrangement.shuffle and each.bypass is not None:
            read[each.bypass] = last.outputs * math.prod(last.out_size)
    entered = sum(size for name, size in read.items() if name.name not in written)
    left = 0
    for job, each in zip(workload.jobs, maps, strict=True):
        halves = sum(MapName(name=each.result, part=part) not in read for part in (0, 1))
        if MapName(name=each.result) not in read:
            left += _result_bytes(job) * halves // 2
    return entered + left


def _result_bytes(job: ConvJob) -> int:
    copies = 4 if job.rearrangement.double else 1
    return copies * job.result_form.channels * math.prod(job.layers[-1].out_size)


def _read(config: ConvConfig, job: PlannedJob, side: str) -> int:
    """Count the bytes of a map that is read: rows of chunks."""
    fields = job.fields
    rows, chunks = fields[f"{side}_rows"], fields[f"{side}_chunks"]
    return sum(
        rows * ((chunks - 1) * fields[f"{side}_bytes_{port}"] + fields[f"{side}_last_bytes_{port}"])
        for port in range(config.ports)
    )
