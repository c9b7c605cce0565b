"""One self-contained HTML page of networks beside other ways to run them, and of a network's signals."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import plotly.graph_objects as go

from sim.compare.bars import method_bars
from sim.compare.page import Card, ComparisonPage, chart_card, grouped_card, table_card
from sim.compare.runner import Comparing
from sim.engines.network.compare.compare import (
    COLUMNS,
    LAYERS,
    METHODS,
    PUBLISHED,
    SIGNALS,
    WHOLE,
    NetworkComparison,
    NetworkFigures,
    network_tables,
    rows_of,
    said,
)
from sim.report.parts import Headline
from sim.report.text import percent, times

_CYCLES = """
One image from start to done. Ours by the model that tests hold to the gates. The processor's are its
published images a second at 300 MHz, two cores with one image each.
"""
_UTILIZATION = "Multiply-accumulates of the network over all multiplier slots of all cycles."
_SIGNALS = """
Each operator's result beside the float model's: power of the real numbers over that of the error. Errors of
earlier operators are in it.
"""
_NOTES = """
<b>Layer by layer</b>: each step of the network is a launch of its own; operands and results pass through
memory, and every launch loads its program.

<b>AMD DPU</b>: Vitis AI 2.5 model zoo, "Performance on ZCU104", several threads: chen_color_resnet18_pt,
resnet_v1_50_tf, SqueezeNet_pt, mobilenet_v2_1_0_224_tf, vgg_16_tf. Two B4096 have 4,096 multipliers of int8.
Its figures are end to end, with the processor's part of the work.
"""


def comparison_page(comparison: NetworkComparison) -> ComparisonPage:
    """Return the page of a comparison."""
    board, cards = comparison.board, list[Card]()
    cards += [
        chart_card("Cycles of an image", _CYCLES, "cycles", cycles(comparison)),
        chart_card("Useful multiplications", _UTILIZATION, "utilization", utilization(comparison)),
        grouped_card("All figures", COLUMNS, comparison.figures, lambda figures: figures.network),
    ]
    if comparison.signals:
        cards.append(table_card("Tensors beside the float model", _SIGNALS, SIGNALS, comparison.signals))
    if comparison.referenced:
        cards.append(Card(title="Reference", lead=escape(said(comparison))))
    return ComparisonPage(
        title="Networks and other ways to run them",
        summary=(
            f"{', '.join(row.name for row in comparison.rows)} · {board.title} at {board.clock_mhz:g} MHz"
        ),
        tiles=_tiles(comparison),
        cards=cards,
        notes=_NOTES,
        footer="Bytes are those that the kernel's ports ask for.",
    )


def _tiles(comparison: NetworkComparison) -> list[Headline]:
    tiles = []
    for row in comparison.rows:
        ours, alone = (comparison.of(row.name, method) for method in (WHOLE, LAYERS))
        published = comparison.of(row.name, PUBLISHED)
        assert ours is not None
        assert alone is not None
        if published is not None:
            faster = times(published.cycles / ours.cycles, places=2)
            tiles.append(Headline(row.name, faster, "fewer cycles than the DPU published", True))
        else:
            fewer = times(alone.cycles / ours.cycles, places=2)
            tiles.append(Headline(row.name, fewer, "fewer cycles than layer by layer", True))
    return tiles


def _bars(
    comparison: NetworkComparison,
    value: Callable[[NetworkFigures], float],
    text: Callable[[NetworkFigures], str],
    **axis: object,
) -> go.Figure:
    """Draw a bar for each method at each network."""
    figures = [(each.method, each.network, each.source, each) for each in comparison.figures]
    return method_bars(figures, METHODS, value, text, height=400, **axis)


def cycles(comparison: NetworkComparison) -> go.Figure:
    """Draw cycles of an image."""
    return _bars(
        comparison,
        lambda each: each.cycles,
        lambda each: f"{each.cycles:,.0f} cycles",
        type="log",
        title="cycles (logarithmic)",
        dtick=1,
    )


def utilization(comparison: NetworkComparison) -> go.Figure:
    """Draw the share of multiplier slots that the network needs."""
    return _bars(
        comparison,
        lambda each: 100 * each.utilization,
        lambda each: f"{percent(each.utilization)} of {each.multipliers:,} multipliers useful",
        title="MACs of all slots",
        ticksuffix=" %",
        range=[0, 103],
    )


COMPARISON = Comparing(
    form="loomwork-compare-network/1",
    rows_of=rows_of,
    document=NetworkComparison.document,
    tables=network_tables,
    page=comparison_page,
)
