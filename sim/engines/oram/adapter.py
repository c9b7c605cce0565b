"""The oblivious map's simulation side: launches from operations, and their expected results."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hw.board import Board
from hw.launch import Buffers, Launch, Tensor, Tensors
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from hw.oram.driver.buffers import PAGES, RESPONSES, launch_buffers
from hw.oram.driver.operations import OperationResults
from hw.oram.driver.sealing import open_responses, seal_responses
from hw.oram.driver.workload import OramWorkload
from hw.oram.kernel.arguments import Fault
from sim.engines.oram.cases import regression
from sim.engines.oram.demo import oram_demo
from sim.engines.oram.expected import trace_mismatches
from sim.engines.oram.job import CODES, KEYS, SEED, VALUES, OramJob, read_job
from sim.engines.oram.operations import read_operations, write_labels, write_results
from sim.engines.oram.state import golden_state, state_of
from sim.memory.trace import read_trace
from sim.run.adapter import Case, Demo, EngineAdapter, FaultyLaunch
from sim.run.files import InputFile, OutputFile, tensor_file

#: Cycles from the read of an unwritten command to the next; all are written when a launch begins.
_POLL_CYCLES = 64


_FAULTS = {
    Fault.LATE_OPERATION: "a bucket was not read within position_cycles, {config.position.read_cycles}",
    Fault.LATE_TOUCH: "a record was not read within touch_cycles, {config.record_sizes.touch_cycles}",
    Fault.LATE_WRITE: "a write to HBM was not answered within settle_cycles, "
    "{config.record_sizes.settle_cycles}",
    Fault.OVERFLOW: "an item found no room, with overflow_entries {config.overflow_entries}",
    Fault.PAGE: "a page is not the one that was written",
    Fault.BUS: "memory answered with an error",
    Fault.EMPTY: "the map was not initialized, or is finished",
    Fault.AGAIN: "the map was initialized before",
    Fault.UNKEYED: "not all words of keys and epoch were written",
}


def _operations(path: Path, config: OramConfig, seed: int) -> Tensors:
    """Read `sim.engines.oram.operations`; ``seed`` chooses the keys of the session."""
    found = read_operations(path, config)
    return {CODES: found.codes, KEYS: found.keys, VALUES: found.values, SEED: np.array(seed)}


def _labels(path: Path, job: OramJob) -> None:
    """Write the labels that the golden map revealed."""
    write_labels(path, [outcome.labels for outcome in job.played.outcomes])


class OramAdapter(EngineAdapter):
    """See `sim.run.adapter.EngineAdapter`; a launch begins with an empty map."""

    name = "oram"
    input_files = (
        tensor_file(
            {
                "codes, keys": "[n]: numbers of operations, and their keys",
                "values": "[n, V]: bytes of each value",
                "seed": "Of the session's keys; 0 without.",
                "rejected": "[n]: 1 for commands that are tampered with",
                "state, finish": "1: compare pages and records too; 1: erase HBM at the end.",
                "tampers": "[m, 6]: tampering of the host with pages",
            }
        ),
        InputFile(
            option="ops",
            suffix=".csv",
            help="Operations on the map, .csv (oram).",
            read=_operations,
            content={
                "op": "nop, get, put, delete or load",
                "key": "A whole number.",
                "value": "A whole number, 34 or 0x22, of put and load; its lowest byte is the first.",
            },
        ),
    )
    output_files = (
        OutputFile(
            option="labels", help="Labels that operations reveal, .csv (oram).", needs="ops", write=_labels
        ),
    )

    examples = ("--config examples/oram.yaml --ops examples/ops.csv",)

    def tensors(self, workload: OramWorkload, config: OramConfig, *, seed: int) -> Tensors:
        """Draw a workload's operations: keys are put, then looked up and put again at random."""
        rng, count = np.random.default_rng([seed, workload.operations]), workload.operations
        keys = rng.integers(0, 1 << config.key_bits, -(-count // 2), np.uint64, endpoint=False)
        puts = rng.random(count) < 0.5
        puts[: len(keys)] = True
        codes = np.where(puts, Code.PUT, Code.GET).astype(np.uint8)
        values = rng.integers(0, 256, (count, config.value_bytes), np.uint8)
        values[~puts] = 0
        drawn = np.concatenate([keys, rng.choice(keys, count - len(keys))])
        return {CODES: codes, KEYS: drawn, VALUES: values, SEED: np.array(seed)}

    def job(self, tensors: Tensors, config: OramConfig) -> OramJob:
        """See `read_job`."""
        return read_job(tensors, config)

    def launch(self, job: OramJob, config: OramConfig, board: Board) -> Launch:
        """Put sealed commands into a ring with room for all of them, and keys and epoch into words."""
        count = len(job.operations)
        scalars = {
            "initialize": 1,
            "finish": int(job.finish),
            "operation_count": count,
            "ring_slots": job.ring_slots,
            "poll_cycles": _POLL_CYCLES,
        }
        buffers = launch_buffers(config, job.commands, state=job.state)
        return FaultyLaunch(scalars=scalars | job.secrets.scalars, buffers=buffers, tampers=job.tampers)

    def golden(self, job: OramJob, config: OramConfig) -> dict[str, Tensor]:
        """Run the operations on `sim.golden.oram.map`."""
        results = job.results
        records = seal_responses(config, job.secrets.session, results)
        return _integers(results, records) | (golden_state(job) if job.state else {})

    def outputs(self, job: OramJob, config: OramConfig, buffers: Buffers) -> dict[str, Tensor]:
        """Open the responses."""
        records = buffers[RESPONSES].reshape(-1, config.command_bytes)
        results = open_responses(config, job.secrets.session, records).results
        return _integers(results, records) | (state_of(job, buffers) if job.state else {})

    def stored(self, job: OramJob, config: OramConfig, buffers: Buffers) -> dict[str, Tensor]:
        """Read the sealed responses, and the pages where they are read back; the board's memory is not."""
        records = {RESPONSES: buffers[RESPONSES]}
        return records | ({PAGES: buffers[PAGES]} if job.state else {})

    def stored_golden(self, job: OramJob, config: OramConfig, golden: Tensors) -> Tensors:
        """Return the sealed ones of the golden map."""
        return {name: golden[name].reshape(-1) for name in (RESPONSES, PAGES) if name in golden}

    def unverified(self, job: OramJob, config: OramConfig, buffers: Buffers) -> tuple[str, ...]:
        """Report the first response with a wrong tag, number or confirmation."""
        records = buffers[RESPONSES].reshape(-1, config.command_bytes)
        opened = open_responses(config, job.secrets.session, records)
        (wrong,) = np.nonzero(~opened.confirmed)
        if not len(wrong):
            return ()
        others = f", and of {len(wrong) - 1:,} others" if len(wrong) > 1 else ""
        number = int.from_bytes(records[wrong[0], :8].tobytes(), "little")
        what = "tag" if number == wrong[0] else f"number, {number:,},"
        if opened.genuine[wrong[0]]:
            what = "confirmation of keys and epoch"
        return (f"{what} of response {wrong[0]:,} is wrong{others}: none of these is read",)

    def results(self, job: OramJob, config: OramConfig, integers: Tensors) -> dict[str, Tensor]:
        """Return codes and results."""
        return {CODES: job.operations.codes} | {name: integers[name] for name in ("statuses", KEYS, VALUES)}

    def write_results(self, path: Path, results: Tensors, golden: Tensors) -> None:
        """Write a line for each operation; see `sim.engines.oram.operations.write_results`."""
        done = OperationResults(statuses=results["statuses"], keys=results[KEYS], values=results[VALUES])
        write_results(path, results[CODES], done)

    def faults(self, config: OramConfig, counters: Mapping[str, int]) -> tuple[str, ...]:
        """Explain each bit of ``status``."""
        return tuple(
            f"The map stopped after {counters['answered_count']:,} answers, {fault.name}: "
            + _FAULTS[fault].format(config=config)
            for fault in Fault(counters["status"])
        )

    def trace_mismatches(
        self, job: OramJob, config: OramConfig, trace: Path, addresses: Mapping[str, int]
    ) -> tuple[str, ...]:
        """Compare the bus with the trace that follows from the labels; see `sim.engines.oram.expected`."""
        return trace_mismatches(job, read_trace(trace), addresses)

    def workload(self, job: OramJob, config: OramConfig) -> OramWorkload:
        """Return the pages of all touches."""
        outcomes = job.played.outcomes
        return OramWorkload(
            operations=len(outcomes),
            pages=tuple(page for outcome in outcomes for page, _ in outcome.touches),
            ring_slots=len(outcomes),
            finish=job.finish,
        )

    def items(self, job: OramJob) -> tuple[int, str]:
        """Return the operations."""
        return len(job.operations), "operations"

    def label(self, job: OramJob, config: OramConfig) -> str:
        """Return the numbers of operations and keys."""
        return f"{len(job.operations):,} operations, 2^{config.log_n} keys of {config.value_bytes} bytes"

    def cases(self) -> Iterator[Case]:
        """See `sim.engines.oram.cases`."""
        yield from regression()

    def demo(self, board: Board) -> Demo | None:
        """See `sim.engines.oram.demo`; pages lie in the host's memory."""
        return None if board.host is None else oram_demo()


def _integers(results: OperationResults, records: NDArray[np.uint8]) -> dict[str, Tensor]:
    """Return responses opened and sealed: sealing is deterministic, so both must be equal."""
    return {"statuses": results.statuses, KEYS: results.keys, VALUES: results.values, "responses": records}


ADAPTER = OramAdapter()
