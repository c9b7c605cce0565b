"""The timing of the depthwise unit, row by row."""

from hw.board import load_board
from hw.conv.model.flow import Departures, WordSpan
from hw.conv.model.latency import Latency
from hw.conv.model.taps import TapJob
from hw.conv.model.waits import CycleCounts
from sim.engines.conv.cases import SMALL

FIELDS = {
    "flags": 0, "rows": 12, "columns": 5, "words": 1, "steps": 4, "out_rows": 6, "out_columns": 5,
    "stride_rows": 2, "first_free": -1, "first_need": 2, "slots": 6,
}  # fmt: skip


class Words:
    """A map whose words are there from the first cycle on."""

    def offer(self, most):
        return WordSpan(most, 0, most - 1)

    def accept(self, piece):
        pass


def test_rows_of_results_free_slots_of_the_map():
    """Row n of results needs the rows from 2 n - 1 on; six slots hold them and those after them."""
    latency = Latency(SMALL, load_board("u55c"))
    times = {"taken": 0, "loaded": 0, "tables": 4}
    job = TapJob(latency, CycleCounts(), FIELDS, offsets=None, passed=Departures(), **times)
    job.source = Words()
    for begun in range(FIELDS["out_rows"]):
        oldest = max(0, 2 * (begun - 1) - 1)
        assert [row for row in range(FIELDS["rows"]) if job.token(row) is not None] == list(
            range(min(FIELDS["rows"], oldest + FIELDS["slots"]))
        )
        for _ in range(FIELDS["out_columns"]):
            job.accept(job.offer(1))
