"""Reports of runs that never were, made through the constructor that real runs use."""

from typing import Any

from hw.board.resources import RamWords, Resources
from hw.energy import Activity, MemoryActivity
from hw.prediction import Prediction
from sim.report.report import Report
from sim.run.accounting import build_report


def synthetic(**changes: Any) -> Report:
    """Return the report of a plausible attention run; ``changes`` replace arguments of the constructor."""
    return build_report(**(arguments() | changes))


def arguments(
    *, queries: int = 256, keys: int = 256, heads: int = 12, stall_cycles: int = 310
) -> dict[str, Any]:
    """Return the constructor's arguments for an engine of 32 rows x 32 lanes x 2 on 5 HBM channels."""
    size, rows = 32, 32
    passes = heads * -(-queries // rows)
    q_bytes, stream_bytes = heads * queries * size, passes * keys * size
    busy = passes * keys
    counters = {
        "cycles_total": busy + stall_cycles + 190,
        "cycles_busy": busy,
        "cycles_stall_keys": stall_cycles - stall_cycles // 3,
        "cycles_stall_output": stall_cycles // 3,
        "cycles_idle": 190,
        "gmem0_read_bytes": q_bytes,
        "gmem0_write_bytes": 2 * q_bytes,
        "gmem1_read_bytes": stream_bytes,
        "gmem2_read_bytes": stream_bytes,
        "tiles": passes * -(-keys // 64),
    }
    return {
        "engine": "attention",
        "board": "u55c",
        "clock_mhz": 300.0,
        "config": {"rows": rows, "lanes": size, "tile_keys": 64, "ports_per_stream": 1},
        "config_hash": "0123456789ab",
        "tool_versions": {"loomwork": "0.1.0", "verilator": "5.049", "python": "3.11.7"},
        "counters": counters,
        "job_cycles": {},
        "simulation": {
            "memory_mode": "model",
            "seed": 7,
            "cycles_start_to_done": counters["cycles_total"] + 2,
            "cycles_simulated": counters["cycles_total"] + 400,
            "run_seconds": 0.4,
            "build_seconds": 17.5,
            "build_cached": False,
        },
        "prediction": Prediction(
            useful_macs=2 * heads * queries * keys * size,
            mac_slots_per_cycle=2 * rows * size,
            compulsory_bytes=3 * q_bytes + 2 * heads * keys * size,
            cycles={"cycles_busy": busy, "cycles_stall_key": 10, "cycles_idle": 190},
            read_bytes={"queries": q_bytes, "keys": stream_bytes, "values": stream_bytes},
            write_bytes={"results": 2 * q_bytes},
            memory_bytes_per_cycle=96.0,
            details={"heads": heads, "queries": queries, "keys": keys},
        ),
        "activity": Activity(
            clock_mhz=300.0,
            cycles=busy + 200,
            busy_cycles=busy,
            multiply_cycles=busy,
            kernel=Resources(lut=300_000, ff=200_000, dsp=3_300, bram36=70, uram=60),
            words=RamWords(bram36=70, uram=20),
            device_luts=1_303_680,
            memories=(MemoryActivity(name="hbm", kind="hbm2", channels=32, row_bytes=1024),),
        ),
        "memory": [
            {
                "memory": "hbm",
                "channel": channel,
                "bus_read_bytes": counters.get(f"gmem{channel}_read_bytes", 0) + (64 if channel < 3 else 0),
                "bus_write_bytes": counters.get(f"gmem{channel}_write_bytes", 0),
                "events": {"row_hits": 90 * channel, "row_misses": 4, "refreshes": 11},
                "ports": {f"gmem{channel}": {}} if channel < 3 else {},
            }
            for channel in range(32)
        ],
        "bit_exact": True,
        "label": "",
        "errors": {"relative_rms_error_int8_inputs": 1.1e-4, "relative_rms_error_given_inputs": 1.6e-2},
    }
