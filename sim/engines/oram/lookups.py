"""A table in the oblivious map, lookups of its rows, and the host's view of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.launch import Tensor
from hw.oram.core.layouts import Code, Status
from hw.oram.driver.buffers import PAGES
from sim.engines.oram.job import CODES, KEYS, SEED, VALUES, OramJob
from sim.memory.trace import Channel, accesses, read_trace
from sim.run.result import RunResult

Int = NDArray[np.int64]


class HostView(NamedTuple):
    """The host's view of operations: pages touched, in order, and the first cycle of each read and write."""

    pages: Int
    reads: Int
    writes: Int


@dataclass(frozen=True)
class LookupPhase:
    """A group of lookups: its description, and the rows in order."""

    name: str
    rows: Int


@dataclass(frozen=True)
class Lookups:
    """A launch that loads a table, and then looks up rows."""

    table: NDArray[np.int8]  #: int8 [rows, V]; a row's number is its key.
    phases: Sequence[LookupPhase]  #: Groups of lookups, in order.

    @property
    def asked(self) -> Int:
        """Rows of all phases."""
        return np.concatenate([phase.rows for phase in self.phases])

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Tensors of the launch; see `sim.engines.oram.job.read_job`."""
        count, asked = len(self.table), self.asked
        values = np.zeros((count + len(asked), self.table.shape[1]), np.uint8)
        values[:count] = self.table.view(np.uint8)
        return {
            CODES: np.repeat([Code.LOAD, Code.GET], [count, len(asked)]).astype(np.uint8),
            KEYS: np.concatenate([np.arange(count), asked]).astype(np.uint64),
            VALUES: values,
            SEED: np.array(0),
        }

    def right(self, done: RunResult) -> list[int]:
        """Count for each phase the responses with the row that was loaded."""
        statuses, values = (done.outputs[name][len(self.table) :] for name in ("statuses", VALUES))
        same = (values == self.table.view(np.uint8)[self.asked]).all(axis=1) & (statuses == Status.HIT)
        return [int(part.sum()) for part in np.split(same, self._ends[:-1])]

    def seen(self, done: RunResult) -> list[HostView]:
        """Return the host's view of the loading, and of each phase."""
        whole = _seen(done)
        job: OramJob = done.job
        touches = np.cumsum([0, *(len(outcome.pages) for outcome in job.played.outcomes)])
        ends = touches[len(self.table) + np.array([0, *self._ends])]
        return [
            HostView(*(column[start:end] for column in whole))
            for start, end in zip([0, *ends], ends, strict=False)
        ]

    def pages(self, done: RunResult) -> list[list[list[int]]]:
        """Return for each phase the pages touched by each lookup."""
        found = [outcome.pages for outcome in done.job.played.outcomes[len(self.table) :]]
        return [found[start:end] for start, end in zip([0, *self._ends], self._ends, strict=False)]

    @property
    def _ends(self) -> Int:
        return np.cumsum([len(phase.rows) for phase in self.phases])


def burst_count(done: RunResult) -> int:
    """Count the bursts at the host's memory in a launch."""
    return len(_accesses(done))


def _accesses(done: RunResult) -> NDArray[Any]:
    [path] = done.traces.values()
    return accesses(read_trace(path))


def _seen(done: RunResult) -> HostView:
    """Find the touches of a launch in its trace: reads and writes that begin at a page's address.

    Writes of the empty map are excluded. Reads follow the order of operations, and so do writes.
    """
    config, first = done.job.config, done.addresses[PAGES]
    found = _accesses(done)
    offset = found["address"].astype(np.int64) - first
    here = (
        (offset >= 0) & (offset < config.host_pages * config.page_bytes) & (offset % config.page_bytes == 0)
    )
    reads, writes = (found[here & (found["channel"] == channel)] for channel in (Channel.AR, Channel.AW))
    pages = (reads["address"].astype(np.int64) - first) // config.page_bytes
    return HostView(
        pages, reads["cycle"].astype(np.int64), writes["cycle"][config.host_pages :].astype(np.int64)
    )
