"""A self-contained HTML page of the host's view of lookups in the oblivious map."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from hw.oram.config import OramConfig
from sim.engines.oram.lookups import HostView, Int, Lookups, burst_count
from sim.report.parts import Headline, chart, exact_tile, write_page
from sim.report.style import RUNS, styled
from sim.run.result import RunResult

#: Bars of a histogram.
_BARS = 64
#: The last phases, which are workloads; those before are sentences.
_WORKLOADS = 2


def write_lookups(lookups: Lookups, done: RunResult, word_of: Callable[[int], str], path: Path) -> None:
    """Write the page; ``word_of`` returns the text of a row.

    Raises `InputError` when the path cannot be written.
    """
    config, rows = done.job.config, len(lookups.table)
    _, *seen = lookups.seen(done)
    shown = list(zip(lookups.phases, seen, strict=True))
    sentences, workloads = shown[:-_WORKLOADS], shown[-_WORKLOADS:]
    asked = [np.histogram(phase.rows, _BARS, (0, rows))[0] for phase, _ in workloads]
    touched = [page_counts(config, touches) for _, touches in workloads]
    names = [phase.name for phase, _ in workloads]
    write_page(
        "oram_lookups.html.j2",
        path,
        config=config,
        rows=rows,
        tiles=_tiles(lookups, done),
        sentences=[
            (
                phase.name,
                chart(bus(config, touches), f"bus{n}"),
                [
                    (word_of(int(row)), ", ".join(map("{:,}".format, pages)) or "none")
                    for row, pages in zip(phase.rows, touched_by, strict=True)
                ],
            )
            for n, ((phase, touches), touched_by) in enumerate(
                zip(sentences, lookups.pages(done), strict=False)
            )
        ],
        histograms=[
            *_histograms("Rows requested", names, asked, rows),
            *_histograms("Pages touched", names, touched, config.host_pages),
        ],
    )


def _tiles(lookups: Lookups, done: RunResult) -> list[Headline]:
    right, count = sum(lookups.right(done)), len(lookups.asked)
    return [
        exact_tile([done.bit_exact]),
        Headline("Rows looked up", f"{right:,} of {count:,}", "equal to the loaded rows", right == count),
        Headline(
            "Rows loaded", f"{len(lookups.table):,}", f"of {lookups.table.shape[1]} bytes, by the device"
        ),
        Headline(
            "Bursts at the host", f"{burst_count(done):,}", "equal to the computed trace", done.bit_exact
        ),
    ]


def page_counts(config: OramConfig, touches: HostView) -> Int:
    """Count the touches of pages, an equal number of pages in each bar."""
    return np.histogram(touches.pages, _BARS, (0, config.host_pages))[0].astype(np.int64)


def bus(config: OramConfig, touches: HostView) -> go.Figure:
    """Plot the reads and writes of pages over time."""
    figure = go.Figure()
    start = touches.reads[0]
    for page, read, write in zip(*map(np.ndarray.tolist, touches), strict=True):
        figure.add_scatter(
            x=[read - start, write - start],
            y=[page, page],
            mode="lines",
            line={"color": RUNS[0], "width": 1},
            showlegend=False,
            hoverinfo="skip",
        )
    for number, (name, cycles, symbol) in enumerate(
        (("read", touches.reads, "circle"), ("written", touches.writes, "square"))
    ):
        figure.add_scatter(
            x=cycles - start,
            y=touches.pages,
            name=name,
            mode="markers",
            marker={"color": RUNS[number], "symbol": symbol, "size": 7},
            hovertemplate=f"page %{{y:,}} {name}<br>in cycle %{{x:,}}<extra></extra>",
        )
    figure.update_xaxes(title="cycles since the first read", rangemode="tozero")
    figure.update_yaxes(title="page", range=[0, 1.03 * config.host_pages])
    return styled(figure, height=320)


def _histograms(title: str, names: Sequence[str], found: Sequence[Int], places: int) -> list[tuple[str, str]]:
    """Draw a histogram for each workload on one scale, with its title."""
    most = 1.08 * max(int(counts.max()) for counts in found)
    return [
        (f"{title}: {name}", chart(_histogram(counts, places, most), f"{title}{n}".replace(" ", "")))
        for n, (name, counts) in enumerate(zip(names, found, strict=True))
    ]


def _histogram(counts: Int, places: int, most: float) -> go.Figure:
    width = places / len(counts)
    starts = np.arange(len(counts)) * width
    figure = go.Figure()
    figure.add_bar(
        x=starts + width / 2,
        y=counts,
        width=width,
        marker={"color": RUNS[0], "line": {"width": 0}},
        customdata=[f"{np.ceil(s):,.0f} to {np.ceil(s + width) - 1:,.0f}" for s in starts],
        hovertemplate="%{customdata}: %{y:,}<extra></extra>",
    )
    figure.update_xaxes(range=[0, places])
    figure.update_yaxes(range=[0, most])
    return styled(figure, height=260).update_layout(margin={"t": 12, "b": 40})
