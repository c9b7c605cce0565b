"""Bytes moved by a launch, over all ports."""

from collections.abc import Sequence

from hw.conv.config import ConvConfig
from hw.conv.driver.plan import PlannedJob
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


def _read(config: ConvConfig, job: PlannedJob, side: str) -> int:
    """Count the bytes of a map that is read: rows of chunks."""
    fields = job.fields
    rows, chunks = fields[f"{side}_rows"], fields[f"{side}_chunks"]
    return sum(
        rows * ((chunks - 1) * fields[f"{side}_bytes_{port}"] + fields[f"{side}_last_bytes_{port}"])
        for port in range(config.ports)
    )
