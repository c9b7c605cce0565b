"""The prediction of a launch from a user's tensors: nothing is built, nothing is simulated."""

import json
from typing import Any

from hw.config import config_dict, config_hash
from hw.launch import Tensors
from sim.report.forecast import ADAPTER, Forecast, completed
from sim.run.accounting import git_revision
from sim.run.energy import energy_section
from sim.run.run import Prepared, Target


def forecast(target: Target, tensors: Tensors) -> Forecast:
    """Predict a launch of an engine on a user's tensors.

    The cycles are those that the report of a simulation of the launch has as predicted.

    Raises `InputError` when a value is illegal.
    """
    adapter, config, board = target.adapter, target.config, target.board
    job = adapter.control_job(tensors, config)
    prepared = Prepared(target=target, job=job)
    found, energy = prepared.prediction, energy_section(prepared.activity)
    stall = "cycles_stall_"
    cycles = found.cycles_total
    figures: dict[str, dict[str, Any]] = {
        "cycles": {
            "cycles_total": cycles,
            "cycles_busy": found.cycles.get("cycles_busy", 0),
            "cycles_idle": found.cycles.get("cycles_idle", 0),
            "cycles_stall": {
                name.removeprefix(stall): count
                for name, count in found.cycles.items()
                if name.startswith(stall)
            },
            "job_cycles": dict(zip(adapter.job_names(job), found.job_cycles, strict=True)),
            "clock_mhz": board.clock_mhz,
        },
        "work": {
            "useful_macs": found.useful_macs,
            "mac_slots_per_cycle": found.mac_slots_per_cycle,
        },
        "traffic": {
            "compulsory_bytes": found.compulsory_bytes,
            "read_bytes": dict(found.read_bytes),
            "write_bytes": dict(found.write_bytes),
            "useful_bytes": found.moved_bytes,
            "useful_over_compulsory_ratio": 0.0,  # asks `completed` for it
            "port_channels": dict(target.placement),
        },
        "roofline": {
            "compute_bound_cycles": found.compute_bound_cycles,
            "memory_ceiling_bytes_per_cycle": found.memory_bytes_per_cycle,
        },
    }
    for section, further in completed(figures).items():
        figures[section] |= further
    items, unit = adapter.items(job)
    document = {
        "label": adapter.label(job, config),
        "engine": target.engine.name,
        "board": board.name,
        "config": config_dict(config),
        "config_hash": config_hash(target.engine.name, config, board),
        "git_revision": git_revision(),
        "predicted_lower_bound": found.open_ended,
        "details": dict(found.details),
        "rate": {
            "unit": unit,
            "items": items,
            "items_per_second": items / (figures["cycles"]["kernel_microseconds"] / 1e6),
            "microjoules_per_item": energy["energy_total_picojoules"] / 1e6 / items,
        },
        "energy": energy,
        **figures,
    }
    return ADAPTER.validate_json(json.dumps(document))
