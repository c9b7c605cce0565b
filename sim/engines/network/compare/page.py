"""One self-contained HTML page of networks beside other ways to run them, and of a network's signals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import plotly.graph_objects as go

from sim.compare.bars import method_bars
from sim.compare.page import Card, ComparisonPage, chart_card, grouped_card, table_card
from sim.compare.runner import Comparing
from sim.engines.network.compare.compare import (
    BARRIERS,
    COLUMNS,
    LAYERS,
    METHODS,
    PUBLISHED,
    SIGNALS,
    SPLIT,
    TERMS,
    WHOLE,
    NetworkComparison,
    NetworkFigures,
    network_tables,
    rows_of,
    said,
)
from sim.report.parts import Headline
from sim.report.text import percent, times

_TIME = """
One image, or one bundle of sentences, from start to done at each one's own clock. Ours by the model that
tests hold to the gates, or measured on them. The DPU's are its published images a second, two cores with one
image each.
"""
_TERMS = """
Queries, keys, values and results pass through the host, which puts tokens one behind the other and heads one
behind the other. Computed: bytes over the link's rate, its latency, and a read and a write between launches,
from the board's file. Left out: the host's own work, its driver, and whether both kernels fit on one board.
"""
_UTILIZATION = """
Multiply-accumulates with weights over all multiplier slots of all cycles. The array's multipliers count, and
those of the attention engine; the kernel's attention unit does not.
"""
_SIGNALS = """
Each operator's result beside the float model's: power of the real numbers over that of the error. Errors of
earlier operators are in it.
"""
_NOTES = """
<b>One core at a time</b>: each command waits for all of the other cores before it; those of one core overlap.

<b>A barrier a step</b>: each command waits for all before it.

<b>Attention engine, host between</b>: attention is a launch of the attention engine with lanes as wide as a
head and as many multipliers as by default; what lies between is a launch of the array. Starts of a U280: a
launch's share of the time that InTAR's artifact publishes beside cycles, some 0.1 ms.

<b>Layer by layer</b>: each step of the network is a launch of its own; operands and results pass through
memory, and every launch loads its program.

<b>AMD DPU</b>: Vitis AI 2.5 model zoo, "Performance on ZCU104", several threads: chen_color_resnet18_pt,
resnet_v1_50_tf, SqueezeNet_pt, mobilenet_v2_1_0_224_tf, vgg_16_tf. Two B4096 have 4,096 multipliers of int8.
Its figures are end to end, with the processor's part of the work.

<b>DFX, Allo, StreamTensor</b>: a 24th of GPT-2 medium's time to the first token, table 4 of StreamTensor
(MICRO 2025), which has the first two from their papers. The embedding and the product behind the last layer
are in it; of ours they are left out. Devices, clocks and precisions are their own; ours is int8 throughout,
with sums of 16 bits.

<b>Millijoules</b>: ours, of kernel, device and memory by docs/energy.md, without the card. No source of the
peers' power was at hand.

<b>InTAR at best</b>: derived, DFX's time over 39.14, the most that its abstract (arXiv 2502.08807) has over
DFX and Allo; the least is 3.65. Its arrays make up to 16,384 products of 4 by 8 bits a cycle.
"""


def comparison_page(comparison: NetworkComparison) -> ComparisonPage:
    """Return the page of a comparison."""
    board, cards = comparison.board, list[Card]()
    cards += [
        chart_card("Time of a run", _TIME, "time", time(comparison)),
        chart_card("Useful multiplications", _UTILIZATION, "utilization", utilization(comparison)),
        grouped_card("All figures", COLUMNS, comparison.figures, lambda figures: figures.network),
    ]
    if comparison.terms:
        cards.append(table_card(f"{SPLIT}: shares", _TERMS, TERMS, comparison.terms))
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
        ours = comparison.of(row.name, WHOLE)
        assert ours is not None
        for other, words in (
            (PUBLISHED, "fewer cycles than the DPU published"),
            (BARRIERS, "fewer cycles than with a barrier a step"),
            (LAYERS, "fewer cycles than layer by layer"),
        ):
            if (found := comparison.of(row.name, other)) is not None:
                fewer = times(found.cycles / ours.cycles, places=2)
                tiles.append(Headline(row.name, fewer, f"{words}; {ours.source}", True))
                break
    return tiles


def _bars(
    figures: Sequence[NetworkFigures],
    value: Callable[[NetworkFigures], float],
    text: Callable[[NetworkFigures], str],
    **axis: object,
) -> go.Figure:
    """Draw a bar for each method at each network."""
    bars = [(each.method, each.network, each.source, each) for each in figures]
    present = {each.method for each in figures}
    methods = [each for each in METHODS if each in present]
    return method_bars(bars, methods, value, text, height=400, **axis)


def time(comparison: NetworkComparison) -> go.Figure:
    """Draw the time of a run."""
    return _bars(
        comparison.figures,
        lambda each: each.milliseconds,
        lambda each: f"{each.milliseconds:,.3f} ms, {each.cycles:,.0f} cycles at {each.clock_mhz:g} MHz",
        type="log",
        title="ms (logarithmic)",
        dtick=1,
    )


def utilization(comparison: NetworkComparison) -> go.Figure:
    """Draw the share of multiplier slots that the network needs, where multipliers are published."""
    return _bars(
        [each for each in comparison.figures if each.utilization is not None],
        lambda each: 100 * (each.utilization or 0),
        lambda each: f"{percent(each.utilization or 0)} of {each.multipliers:,} multipliers useful",
        title="MACs of all slots",
        ticksuffix=" %",
        range=[0, 103],
    )


COMPARISON = Comparing(
    form="loomwork-compare-network/2",
    rows_of=rows_of,
    document=NetworkComparison.document,
    tables=network_tables,
    page=comparison_page,
)
