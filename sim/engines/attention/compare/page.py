"""One self-contained HTML page of the attention engine beside published schedules."""

from collections.abc import Callable, Sequence
from html import escape

import plotly.graph_objects as go

from sim.compare.page import ComparisonPage, chart_card, grouped_card, table_card
from sim.compare.runner import Comparing
from sim.compare.simulated import CO_SIMULATIONS
from sim.engines.attention.baselines import SPILLING
from sim.engines.attention.baselines.work import flash_law_bytes
from sim.engines.attention.compare.compare import (
    COLUMNS,
    METHODS,
    MODEL_COLUMNS,
    OURS,
    AttentionComparison,
    AttentionFigures,
    attention_tables,
    prediction_error,
)
from sim.report.parts import Headline
from sim.report.style import INK, RUNS, beside, styled
from sim.report.text import percent, signed_percent, sized, times

#: Length that the headline figures are of, where it is among those compared.
_HEADLINE = 1024
_DASHES = {"two passes": "dot", "three passes, unfused": "dash"}
_LAW = "N²d²/M"
_LOGARITHMIC = {"type": "log", "dtick": 1}
_UTILIZATION = """
Products of scores and of weighted values over all multiplier slots of all cycles. Ours from start to done
with the board’s memory behind every port: full circles are gates simulated and compared bit by bit, open
ones predicted. The others are formulas, without latency of memory or filling of pipelines.
"""
_TRAFFIC = """
1 is every query, key, value and result once. All have the same memory on chip; N²d²/M is the growth that
FlashAttention has and no algorithm avoids, M elements on chip, constant unknown.
"""
_NOTES = """
<b>FuseMax</b> (MICRO 2024, arXiv 2406.10491): the model of its artifact, which publishes the utilization
that counts maxima and exponentials as work; here only products count.

<b>FSA</b> (arXiv 2507.11331): 5 d + 11 cycles for d queries and d keys, from the times in its RTL; keys and
values once for every d queries.

<b>ITA</b> (ISLPED 2023, arXiv 2307.03493): one cycle more than its multipliers need, as simulated with its
own bench; the matrix of probabilities goes out and comes back, memory is never late.

<b>Two passes</b>: scores written as they come and read once for the weighted sums, in the board’s
bandwidth.

<b>Three passes, unfused</b>: the unfused baseline of FuseMax’s artifact: product, softmax on vector lanes,
product.

All: operands and spilled matrices of a byte an element, results as wide as ours; square arrays are the
power of two nearest to as many multipliers, counted in whole and part.

<b>mJ</b>: ours, of kernel, device and memory by docs/energy.md, without the card.
"""


def comparison_page(comparison: AttentionComparison) -> ComparisonPage:
    """Return the page of a comparison."""
    setting = comparison.setting
    model = table_card(
        "Simulated and predicted",
        "The analytic model beside the gates it stands for at greater lengths.",
        MODEL_COLUMNS,
        comparison.measured,
    )
    return ComparisonPage(
        title="Attention and published schedules",
        summary=(
            f"{setting.heads} heads of {setting.size} back to back, dense · {setting.machine.macs:,} "
            f"multipliers, {sized(setting.machine.on_chip_bytes)} on chip · {setting.board} at "
            f"{setting.clock_mhz:g} MHz"
        ),
        tiles=_tiles(comparison),
        cards=(
            chart_card("Useful multiplications", _UTILIZATION, "utilization", utilization(comparison)),
            chart_card("Off-chip traffic", _TRAFFIC, "traffic", traffic(comparison)),
            chart_card("Bandwidth asked for", "Bytes over cycles.", "bandwidth", bandwidth(comparison)),
            *([model] if comparison.measured else []),
            grouped_card(
                "All figures",
                COLUMNS,
                comparison.figures,
                lambda figures: f"{figures.tokens:,} tokens",
                lead="Bold: measured.",
            ),
        ),
        notes=_NOTES,
        footer=f"Bytes are those the schedules ask for. Useful MACs are 2 · heads · N² · {setting.size}.",
    )


def _tiles(comparison: AttentionComparison) -> list[Headline]:
    rows = comparison.rows
    row = min(rows, key=lambda row: abs(row.tokens - _HEADLINE))
    ours = comparison.of(row, OURS)
    on_chip = [comparison.of(row, method) for method in METHODS if method not in (OURS, *SPILLING)]
    best = max(on_chip, key=lambda figures: figures.utilization)
    spilled = min((comparison.of(row, method) for method in SPILLING), key=lambda found: found.moved_bytes)
    at_length = f"at {row.tokens:,} tokens"
    tiles = [
        Headline(
            f"Useful MACs {at_length}", percent(ours.utilization), f"{ours.source}; start to done", True
        ),
        Headline(
            f"{best.method} there", percent(best.utilization), "the best of those that keep scores on chip"
        ),
        Headline(
            f"Bytes {at_length}",
            times(ours.over_compulsory, places=2),
            "of the compulsory ones: every input and result once",
        ),
        Headline(
            f"{spilled.method} there",
            times(spilled.over_compulsory, places=2),
            "the least of those that keep scores in memory",
        ),
    ]
    measured = comparison.measured
    if measured:
        worst = max((prediction_error(*found) for found in measured), key=abs)
        exact = f"{sum(found.exact for _, found in measured)} of {len(measured)}"
        up_to = f"up to {max(row.tokens for row, _ in measured):,} tokens"
        tiles += [
            Headline("Bit-exact co-simulations", exact, up_to, comparison.exact),
            Headline("Prediction error", signed_percent(worst), "the worst of all simulations"),
        ]
    return tiles


def _lines(
    comparison: AttentionComparison,
    value: Callable[[AttentionFigures], float],
    text: Callable[[AttentionFigures], str],
    *,
    height: int,
    **axis: object,
) -> go.Figure:
    """Draw a line for each method over the number of tokens; full marks are measured, open ones are not."""
    figure = go.Figure()
    lengths = [row.tokens for row in comparison.rows]
    for number, method in reversed(list(enumerate(METHODS))):
        found = [comparison.of(row, method) for row in comparison.rows]
        colour = RUNS[number]
        ours = method == OURS
        figure.add_scatter(
            x=lengths,
            y=[value(figures) for figures in found],
            name=escape(method),
            mode="lines+markers",
            legendrank=number,
            line={"color": colour, "width": 3 if ours else 1.6, "dash": _DASHES.get(method, "solid")},
            marker={
                "symbol": "circle" if ours else "square",
                "size": 10 if ours else 5,
                "color": [colour if figures.source != "predicted" else "white" for figures in found],
                "line": {"color": colour, "width": 2},
                "opacity": 1,
            },
            customdata=[f"{escape(method)}, {figures.source}<br>{text(figures)}" for figures in found],
            hovertemplate="%{x:,} tokens<br>%{customdata}<extra></extra>",
        )
    figure.update_xaxes(
        type="log",
        title="tokens of a head (logarithmic)",
        tickvals=lengths,
        ticktext=[f"{tokens >> 10}K" if tokens % 1024 == 0 else str(tokens) for tokens in lengths],
    )
    figure.update_yaxes(**axis)
    return beside(styled(figure, height=height), top=20).update_layout(hovermode="closest")


def utilization(comparison: AttentionComparison) -> go.Figure:
    """Draw the share of multiplier slots that hold a useful multiplication."""
    return _lines(
        comparison,
        lambda figures: 100 * figures.utilization,
        lambda figures: f"{percent(figures.utilization)} useful<br>{figures.cycles:,.0f} cycles",
        height=440,
        title="useful MACs of all slots",
        ticksuffix=" %",
        range=[0, 103],
    )


def traffic(comparison: AttentionComparison) -> go.Figure:
    """Draw off-chip bytes over the compulsory ones, with the FlashAttention law."""
    setting = comparison.setting
    figure = _lines(
        comparison,
        lambda figures: figures.over_compulsory,
        lambda figures: (
            f"{sized(figures.moved_bytes)}, {figures.over_compulsory:,.2f} x compulsory"
            f"<br>{figures.over_flash_law:,.2f} x {_LAW}"
        ),
        height=440,
        title="bytes over compulsory (logarithmic)",
        **_LOGARITHMIC,
    )
    works = [setting.work(row.tokens) for row in comparison.rows]
    law = [flash_law_bytes(work, setting.machine) / work.compulsory_bytes for work in works]
    hover = f"%{{x:,}} tokens<br>{_LAW}: %{{y:,.3f}} x compulsory<extra></extra>"
    return _reference(figure, comparison, law, f"{_LAW}, no constant", hovertemplate=hover)


def bandwidth(comparison: AttentionComparison) -> go.Figure:
    """Draw the bytes a cycle of each method, and the board's bandwidth."""
    figure = _lines(
        comparison,
        lambda figures: figures.bytes_per_cycle,
        lambda figures: f"{figures.bytes_per_cycle:,.2f} bytes a cycle<br>{figures.milliseconds:,.3f} ms",
        height=400,
        title="bytes a cycle (logarithmic)",
        **_LOGARITHMIC,
    )
    limit = comparison.setting.machine.bytes_per_cycle
    name = f"{escape(comparison.setting.board)}: {limit:,.0f}"
    return _reference(figure, comparison, [limit] * len(comparison.rows), name, hoverinfo="skip")


def _reference(
    figure: go.Figure, comparison: AttentionComparison, y: Sequence[float], name: str, **hover: str
) -> go.Figure:
    """Draw a reference line."""
    return figure.add_scatter(
        x=[row.tokens for row in comparison.rows],
        y=y,
        name=name,
        mode="lines",
        legendrank=len(METHODS),
        line={"color": INK, "width": 1.2, "dash": "dashdot"},
        **hover,
    )


COMPARISON = Comparing(
    form="loomwork-compare-attention/1",
    rows_of=CO_SIMULATIONS.read,
    document=AttentionComparison.document,
    tables=attention_tables,
    page=comparison_page,
)
