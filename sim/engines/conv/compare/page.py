"""One self-contained HTML page of the convolution engine beside other schedules."""

from collections.abc import Callable
from html import escape

import plotly.graph_objects as go

from sim.compare.bars import method_bars
from sim.compare.page import ComparisonPage, chart_card, grouped_card, table_card
from sim.compare.runner import Comparing
from sim.compare.simulated import CO_SIMULATIONS
from sim.engines.conv.baselines.codenet import CLOCK_MHZ, LOOP_CYCLES
from sim.engines.conv.compare.compare import (
    CHOSEN,
    COLUMNS,
    GATHER,
    METHODS,
    OURS,
    PUBLISHED_COLUMNS,
    ConvComparison,
    ConvFigures,
    conv_tables,
)
from sim.report.parts import Headline
from sim.report.style import RUNS
from sim.report.text import percent, sized, times

#: Works of the headline figures.
_HEADLINE, _OPERATION = "config c", "depthwise, square"

_CYCLES = """
From start to done with the board’s memory behind every port. Ours as simulated where the table says
measured, else predicted by the model that tests hold to the gates; the others are formulas. Dashes:
figures that CoDeNet published, at its 250 MHz on an Ultra96.
"""
_UTILIZATION = """
Over all multiplier slots of all cycles. A bilinear sample of a full layer passes the array as three digits,
one useful multiplication in three.
"""
_TRAFFIC = """
1 is the first map, the last one, weights and offsets once, in the narrowest form of any method; maps
between the layers of a network count where a method writes them.
"""
_NOTES = """
<b>Gather, no buffer</b>: the arrays and ports of our 16 x 16 engine; every neighbour of every tap from
memory, neighbours side by side in one request, 64 of them under way at a port that never waits for a row of
its banks.

<b>Like CoDeNet</b> (arXiv 2006.08357, and the loops of its source): words of 16 channels through 16 x 16
and 16 x 9 multipliers, a line buffer that stores and reads in turn, layer after layer, offsets from memory.
Each entry into a pipelined loop costs {loop_cycles} cycles, fitted to its measurements of c and d;
<b>gapless</b>: none.

Its full 3 x 3 array of 8 x 8 x 9 is taken as a cycle for each tile of 8 x 8; with offsets without a bound
it has no line buffer, and reads a pixel for each tap, one request after the other.

The processor does its first layer, which counts neither as cycles nor as work there; ours does it.

<b>mJ</b>: ours, of kernel, device and memory by docs/energy.md, without the card.
"""


def comparison_page(comparison: ConvComparison) -> ComparisonPage:
    """Return the page of a comparison."""
    board = comparison.setting.board
    return ComparisonPage(
        title="Convolution and other schedules",
        summary=(
            "Operations of CoDeNet’s table 2 (64 x 64 pixels, 256 channels, 3 x 3) and its networks a, c and "
            f"d · {board.title} at {board.clock_mhz:g} MHz"
        ),
        tiles=_tiles(comparison),
        cards=(
            chart_card("Cycles", _CYCLES, "cycles", cycles(comparison)),
            chart_card("Useful multiplications", _UTILIZATION, "utilization", utilization(comparison)),
            chart_card("Off-chip traffic", _TRAFFIC, "traffic", traffic(comparison)),
            grouped_card("All figures", COLUMNS, comparison.figures, lambda figures: figures.work),
            table_card(
                "CoDeNet as published and its formula",
                "The formula has this board’s memory, which is faster than that of the Ultra96.",
                PUBLISHED_COLUMNS,
                comparison.published,
            ),
        ),
        notes=_NOTES.format(loop_cycles=LOOP_CYCLES),
        footer="Bytes are those the schedules ask for.",
    )


def _tiles(comparison: ConvComparison) -> list[Headline]:
    tiles = []
    for name in (_HEADLINE, _OPERATION):
        published = next((found for found in comparison.published if found.work == name), None)
        for method in (OURS, CHOSEN):
            ours = comparison.of(name, method)
            if ours is not None and published is not None:
                faster = times(published.published_cycles / ours.cycles, places=1)
                note = f"fewer than CoDeNet published; {method}, {ours.source}"
                tiles.append(Headline(f"Cycles of {name}", faster, note, True))
        ours, gathered = comparison.of(name, OURS), comparison.of(name, GATHER)
        if ours is not None and gathered is not None:
            fewer = times(gathered.moved_bytes / ours.moved_bytes, places=1)
            tiles.append(Headline(f"Bytes of {name}", fewer, "fewer than gathering without a buffer"))
    measured = [row.measured for row in comparison.rows if row.measured is not None]
    if measured:
        exact = f"{sum(found.exact for found in measured)} of {len(measured)}"
        tiles.append(Headline("Bit-exact co-simulations", exact, OURS, comparison.exact))
    return tiles


def _bars(
    comparison: ConvComparison,
    value: Callable[[ConvFigures], float],
    text: Callable[[ConvFigures], str],
    **axis: object,
) -> go.Figure:
    """Draw a bar for each method at each operation and network."""
    figures = [(each.method, each.work, each.source, each) for each in comparison.figures]
    figure = method_bars(figures, METHODS, value, text, height=430, **axis)
    return figure.update_xaxes(
        type="category",
        categoryorder="array",
        categoryarray=[escape(row.work.name) for row in comparison.rows],
    )


def cycles(comparison: ConvComparison) -> go.Figure:
    """Draw cycles, and CoDeNet's own as marks."""
    figure = _bars(
        comparison,
        lambda each: each.cycles,
        lambda each: f"{each.cycles:,.0f} cycles",
        type="log",
        title="cycles (logarithmic)",
        dtick=1,
    )
    return figure.add_scatter(
        x=[escape(found.work) for found in comparison.published],
        y=[found.published_cycles for found in comparison.published],
        name="CoDeNet as published",
        mode="markers",
        marker={"symbol": "line-ew", "size": 30, "line": {"color": RUNS[-1], "width": 3}},
        customdata=[
            " and ".join(f"{figure:g} ms" for figure in found.milliseconds) for found in comparison.published
        ],
        hovertemplate=f"%{{x}}<br>%{{y:,}} cycles at {CLOCK_MHZ:g} MHz: %{{customdata}}<extra></extra>",
    )


def utilization(comparison: ConvComparison) -> go.Figure:
    """Draw the share of multiplier slots that hold a useful multiplication."""
    return _bars(
        comparison,
        lambda each: 100 * each.utilization,
        lambda each: f"{percent(each.utilization)} of {each.macs:,} multipliers useful",
        title="useful MACs of all slots",
        ticksuffix=" %",
        range=[0, 103],
    )


def traffic(comparison: ConvComparison) -> go.Figure:
    """Draw off-chip bytes over the compulsory ones."""
    return _bars(
        comparison,
        lambda each: each.over_compulsory,
        lambda each: f"{sized(each.moved_bytes)}, {times(each.over_compulsory, places=2)}",
        title="bytes over compulsory",
        rangemode="tozero",
    )


COMPARISON = Comparing(
    form="loomwork-compare-conv/1",
    rows_of=CO_SIMULATIONS.read,
    document=ConvComparison.document,
    tables=conv_tables,
    page=comparison_page,
)
