"""Bytes moved by a launch."""

from collections.abc import Sequence
from dataclasses import dataclass

from hw.conv.config import ConvConfig
from hw.conv.driver.plan import PlannedJob
from hw.conv.movers.descriptor import used_bytes
from hw.conv.movers.side_port import LOG_BYTES


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Bytes by stream."""

    map_bytes: int
    bypass_bytes: int
    weight_bytes: int
    offset_bytes: int
    descriptor_bytes: int
    result_bytes: int
    log_bytes: int


def traffic(config: ConvConfig, jobs: Sequence[PlannedJob]) -> Traffic:
    """Add up the bytes of all jobs, over all ports."""
    return Traffic(
        map_bytes=sum(_read(config, job, "in") for job in jobs),
        bypass_bytes=sum(_read(config, job, "bypass") for job in jobs if job.route.rearrangement.shuffle),
        weight_bytes=sum(
            job.fields.get("weight_bytes", 0)
            + job.fields.get("tile_bytes", 0) * job.fields.get("tile_repeats", 0)
            for job in jobs
        ),
        offset_bytes=sum(job.fields.get("offset_bytes", 0) for job in jobs),
        descriptor_bytes=len(jobs) * used_bytes(config),
        result_bytes=sum(
            job.fields["out_map_rows"] * job.fields[f"out_bytes_{port}"]
            for job in jobs
            for port in range(config.ports)
        ),
        log_bytes=len(jobs) * LOG_BYTES,
    )


def _read(config: ConvConfig, job: PlannedJob, side: str) -> int:
    """Count the bytes of a map that is read: rows of chunks."""
    fields = job.fields
    rows, chunks = fields[f"{side}_rows"], fields[f"{side}_chunks"]
    return sum(
        rows * ((chunks - 1) * fields[f"{side}_bytes_{port}"] + fields[f"{side}_last_bytes_{port}"])
        for port in range(config.ports)
    )
