"""One self-contained HTML page of the oblivious map beside others."""

from collections.abc import Callable
from functools import partial
from html import escape

import plotly.graph_objects as go

from sim.compare.page import ComparisonPage, chart_card, grouped_card, table_card
from sim.compare.runner import Comparing
from sim.engines.oram.compare.compare import (
    BOLT,
    COLUMNS,
    LAUNCH,
    MEASURED_COLUMNS,
    METHODS,
    OURS,
    OramComparison,
    OramFigures,
    oram_tables,
)
from sim.engines.oram.compare.measure import MAP_SIMULATIONS
from sim.report.parts import Headline, exact_tile
from sim.report.style import RUNS, menu, styled
from sim.report.text import percent, signed_percent, sized, times

#: Keys that the headline figures are of, where they are among those compared.
_HEADLINE = 20
#: The map that the headline figures are of.
_FIRST = METHODS[0]

_STYLE = """
  td:nth-child(2), td:nth-child(3) { text-align: left; white-space: nowrap; }
  tr.predicted > td { color: var(--accent); }
  .notes li { margin: 3px 0; }
"""
_TRAFFIC = """
Pages read and written for an operation on average, whatever the operation. Commands and responses are left
out, which are the same for all. Open marks here and below: the board has too little HBM, or the host too
little memory.
"""
_ACCESSES = "Bursts to the host’s memory for these pages: none crosses a multiple of 1,024 bytes."
_CYCLES = f"""
Ours as predicted for {LAUNCH.operations:,} operations behind the board’s link to the host, with rings of
{LAUNCH.ring_slots:,} slots each, commands and responses included. BOLT one operation after the other, as
published. The others at their best, as if nothing but that link took time: its bytes in one direction, or
its write bursts under way, of pages and of commands and responses like ours.
"""
_HBM = "Everything the map keeps there; the hash table keeps nothing."
_MEASURED = """
Gates of maps of 2^8 keys with one AES pipeline each way, behind the board’s memories, beside the formulas
for the pages they touched. Bytes and bursts are those of the bus; bytes of HBM those that were ever read or
written. Initialization is left out.
"""
_NOTES = """
<b>Loomwork</b>: pages of a label (one) or of two, as in BOLT (both), touched where they lie with the host
(skip) or always one for a label (always). Bytes are 2 (1 − α) P and 2 P for a label, P the bytes of a page;
the lists of a page overflow within 10^12 operations with the probability in the table, whatever the
workload. Maps that need them get 16 HBM ports instead of 8.

<b>BOLT</b> (CCS 2025, arXiv 2509.01742, and its artifact): two bins read and written, a page of as many
slots as its bound on a bin’s load; four entries of 12 bytes a key in HBM. Cycles: on the line through its
published times for 2^20 and 5 · 2^20 keys with values of 8 bytes; for larger values the link’s time for the
bytes of both ways is added.

<b>Path ORAM</b> (CCS 2013): four slots a bucket, as many of its highest levels in HBM as hold {alpha} of
the keys’ slots, and the position map in HBM as ours; <b>recursive</b>: the position map in smaller trees,
16 labels a block.

<b>Hash table, insecure</b>: chained pages in the host’s memory, 75 % full, half of the operations write; it
hides and seals nothing.

<b>µJ</b>: ours, an operation’s share of kernel, device and memories by docs/energy.md, without the card.
"""


def comparison_page(comparison: OramComparison) -> ComparisonPage:
    """Return the page of a comparison."""
    board, config = comparison.board, comparison.config
    alpha = percent(config.alpha, places=0)
    simulated = table_card(
        "Simulated and predicted", _MEASURED, MEASURED_COLUMNS, comparison.measured.items()
    )
    return ComparisonPage(
        title="The oblivious map and others",
        summary=(
            f"Keys of 8 bytes, {config.items_per_label} keys a label, {config.slots} slots a page, {alpha} "
            f"of the labels in HBM · {board.title} at {board.clock_mhz:g} MHz"
        ),
        tiles=_tiles(comparison),
        cards=(
            chart_card("Bytes at the host", _TRAFFIC, "traffic", traffic(comparison)),
            chart_card("Accesses", _ACCESSES, "accesses", accesses(comparison)),
            chart_card("Cycles", _CYCLES, "cycles", cycles(comparison)),
            chart_card("HBM", _HBM, "hbm", hbm(comparison)),
            *([simulated] if comparison.measured else []),
            grouped_card(
                "All figures",
                COLUMNS,
                comparison.figures,
                lambda figures: f"values of {figures.value_bytes} bytes",
                skipped=0,
                row_class=2,
            ),
        ),
        notes=_NOTES.format(alpha=alpha),
        footer="Bytes are those the maps ask for.",
        style=_STYLE,
    )


def _tiles(comparison: OramComparison) -> list[Headline]:
    log_n = min(comparison.log_ns, key=lambda log_n: abs(log_n - _HEADLINE))
    value_bytes = comparison.values[0]
    ours, bolt = (comparison.of(method, log_n, value_bytes) for method in (_FIRST, BOLT))
    there = f"2^{log_n} keys, {value_bytes} bytes"
    rate = ours.operations_per_second / bolt.operations_per_second
    tiles = [
        Headline(
            "Slots moved an operation", times(ours.slots_of_bolt, places=2), f"of BOLT’s bound; {there}"
        ),
        Headline("Bytes of pages an operation", f"{ours.page_bytes:,.1f}", f"BOLT {bolt.page_bytes:,.1f}"),
        Headline("Operations a second", times(rate, places=0), f"of BOLT’s, one at a time; {there}"),
    ]
    if comparison.measured:
        worst = max((found.cycles_error for found in comparison.measured.values()), key=abs)
        tiles += [
            exact_tile(found.exact for found in comparison.measured.values()),
            Headline("Prediction error", signed_percent(worst), "cycles, the worst of all simulations"),
        ]
    return tiles


def _lines(
    comparison: OramComparison,
    title: str,
    value: Callable[[OramFigures], float],
    text: Callable[[OramFigures], str],
) -> go.Figure:
    """Draw a line for each map over the keys, by size of values; open marks do not fit the board."""
    figure = go.Figure()
    for value_bytes in comparison.values:
        for number, method in enumerate(METHODS):
            found = [comparison.of(method, log_n, value_bytes) for log_n in comparison.log_ns]
            colour, ours = RUNS[number], method in OURS
            figure.add_scatter(
                x=comparison.log_ns,
                y=[value(each) for each in found],
                name=escape(method),
                mode="lines+markers",
                visible=value_bytes == comparison.values[0],
                line={"color": colour, "width": 3 if ours else 1.6, "dash": "solid" if ours else "dash"},
                marker={
                    "size": 9 if ours else 7,
                    "symbol": "circle" if ours else "square",
                    "color": [colour if each.fits else "white" for each in found],
                    "line": {"color": colour, "width": 2},
                },
                customdata=[f"{escape(method)}, {each.source}<br>{text(each)}" for each in found],
                hovertemplate="2^%{x} keys<br>%{customdata}<extra></extra>",
            )
    labels = [f"values of {value_bytes} bytes" for value_bytes in comparison.values]
    figure.update_xaxes(title="keys", tickvals=comparison.log_ns, tickprefix="2^")
    figure.update_yaxes(type="log", title=title, dtick=1)
    styled(figure, height=470)
    return figure.update_layout(
        legend={"orientation": "v", "x": 1.01, "y": 1, "yanchor": "top"},
        updatemenus=[menu(labels, len(METHODS), y=1.03)],
    )


traffic = partial(
    _lines,
    title="bytes an operation (logarithmic)",
    value=lambda each: each.page_bytes,
    text=lambda each: f"{each.page_bytes:,.1f} bytes<br>{each.slots:,.1f} slots",
)
accesses = partial(
    _lines,
    title="bursts an operation (logarithmic)",
    value=lambda each: each.bursts,
    text=lambda each: f"{each.bursts:,.2f} bursts for {each.accesses:,.2f} pages",
)
cycles = partial(
    _lines,
    title="cycles an operation (logarithmic)",
    value=lambda each: each.cycles,
    text=lambda each: f"{each.cycles:,.1f} cycles<br>{each.operations_per_second / 1e6:,.2f} M ops/s",
)


def hbm(comparison: OramComparison) -> go.Figure:
    """Draw bytes of HBM, and how many the board has; a map without any has no line."""
    figure = _lines(
        comparison,
        "bytes of HBM (logarithmic)",
        lambda each: each.hbm_bytes,
        lambda each: f"{sized(each.hbm_bytes)} of HBM, {sized(each.host_bytes)} of the host’s",
    )
    return figure.add_hline(
        y=comparison.board.memory.total_bytes,
        line={"dash": "dot", "width": 1.5},
        annotation_text=f"{escape(comparison.board.title)}: {sized(comparison.board.memory.total_bytes)}",
        annotation_position="top left",
    )


COMPARISON = Comparing(
    form="loomwork-compare-oram/1",
    rows_of=MAP_SIMULATIONS.read,
    document=OramComparison.document,
    tables=oram_tables,
    page=comparison_page,
    title="Measuring",
)
