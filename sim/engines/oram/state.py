"""The map after a launch, from its buffers and from the golden model."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hw.oram.config import BUCKET_BYTES, OramConfig
from hw.oram.driver.buffers import PAGES, gather_lines
from hw.oram.driver.capacity import hbm_structures
from hw.oram.kernel.arguments import position_names, record_names
from sim.engines.oram.job import OramJob
from sim.golden.oram.image import bucket_images, erased_images, record_images, sealed_pages

Bytes = NDArray[np.uint8]


def golden_state(job: OramJob) -> dict[str, Bytes]:
    """Return pages [H, P], records, and two tables of buckets [B, 128]; undefined bytes of HBM are zeros.

    After the end with ``finish`` no byte of HBM is undefined.
    """
    config, state = job.config, job.played.state
    images = {name: np.where(care, image, 0) for name, (image, care) in _hbm_images(job).items()}
    return {"pages": sealed_pages(state, job.page_gcm, range(config.host_pages))} | images


def state_of(job: OramJob, buffers: Mapping[str, Bytes]) -> dict[str, Bytes]:
    """Return the same from the buffers."""
    config = job.config
    found = {"pages": buffers[PAGES].reshape(-1, config.page_bytes)}
    lines = _hbm_lines(config, buffers)
    return found | {name: np.where(care, lines[name], 0) for name, (_, care) in _hbm_images(job).items()}


def _hbm_images(job: OramJob) -> dict[str, tuple[Bytes, NDArray[np.bool_]]]:
    config, state = job.config, job.played.state
    if job.finish:
        lines = {"records": (config.records, config.record_bytes, 1)}
        lines |= {f"table{table}": (config.buckets, BUCKET_BYTES, 0) for table in range(2)}
        return {name: erased_images(*shape) for name, shape in lines.items()}
    return {"records": record_images(state, range(config.records))} | {
        f"table{table}": bucket_images(state, table, range(config.buckets)) for table in range(2)
    }


def _hbm_lines(config: OramConfig, buffers: Mapping[str, Bytes]) -> dict[str, Bytes]:
    """Return records and tables; each table of the position map has half of its ports."""
    position, records = hbm_structures(config)
    half = position.ports // 2
    table = replace(position, lines=position.lines // 2, ports=half)
    names = position_names(config)
    return {"records": gather_lines(records, [buffers[name] for name in record_names(config)])} | {
        f"table{n}": gather_lines(table, [buffers[name] for name in names[n * half : (n + 1) * half]])
        for n in range(2)
    }
