"""One self-contained HTML page that compares plans with baselines."""

import itertools
from html import escape

import plotly.graph_objects as go

from hw.scheduler.planner.baselines import Allocation, Greedy, Replacement, method_name
from sim.compare.page import Card, ComparisonPage, chart_card, grouped_card, table_card
from sim.compare.runner import Comparing
from sim.plans.compare import ROW_COLUMNS, SUMMARY_COLUMNS, PlanComparison, plan_tables, rows_of
from sim.plans.rows import COSMA, FULL, GREEDY, IDEAL, WHOLE, PlanRow
from sim.report.parts import Headline, chart
from sim.report.style import INK, RUNS, beside, hover, menu, styled
from sim.report.text import percent, sized

#: From nothing saved to everything; plans that move more than the baseline stand out.
_SHARES = [[0, "#c8504b"], [0.4999, "#f3dfc9"], [0.5, "#f4f6f8"], [0.75, "#a9d0d6"], [1, "#2a7f8e"]]
_COLOURS = {
    f"plan, {WHOLE}": "#7fb8c2",
    f"plan, {FULL}": RUNS[0],
    method_name(Replacement.LRU, Allocation.FIRST_FIT): "#b0b9c4",
    method_name(Replacement.LRU, Allocation.IDEAL): "#d3d9e0",
    COSMA: "#e07b39",
    IDEAL: "#e9b44c",
    Greedy.BY_SIZE.value: "#b98aa5",
    GREEDY: "#8e5572",
}

_STYLE = """
  td:last-child, th:last-child { text-align: left; }
  td:first-child { min-width: 130px; }
"""
_SAVED = """
Against the better order of Belady with first-fit, COSMA's baseline; below M_R, where operators do not fit
whole, against keeping tensors greedily while they fit. Whole tensors are COSMA’s model; all techniques are
bands, windows and pipelines, with the parameters that bands read again counted in. ✓: proven optimal, over
all orders.
"""
_TRAFFIC = "100 % is that baseline. Lines: the bound of all plans with whole tensors, in any order."
_SUMMARIES = """
Means over the networks in which the baseline moves anything: in the others there is nothing to save.
"""


def comparison_page(comparison: PlanComparison) -> ComparisonPage:
    """Return the page of a comparison."""
    drawings = {
        kind: chart(savings(comparison, kind), f"savings{number}")
        for number, kind in enumerate(comparison.kinds)
    }
    return ComparisonPage(
        title="Plans and baselines",
        summary=(
            f"Avoidable off-chip traffic of {len(comparison.graphs)} networks at "
            f"{', '.join(comparison.budgets)} · {len(comparison.rows)} plans"
        ),
        tiles=_tiles(comparison),
        cards=(
            Card(title="Avoidable bytes saved", lead=_SAVED, charts=drawings),
            chart_card("Traffic of all methods", _TRAFFIC, "traffic", traffic(comparison)),
            table_card("By scratchpad", _SUMMARIES, SUMMARY_COLUMNS, comparison.summaries),
            grouped_card(
                "All plans",
                ROW_COLUMNS,
                comparison.rows,
                lambda row: row.graph,
                lead="Avoidable traffic; baselines in the better of the default and the least-peak order.",
                row_class=None,
            ),
        ),
        footer=(
            "Avoidable bytes are off-chip bytes beyond reading every input once and writing every output "
            "once."
        ),
        style=_STYLE,
    )


def _tiles(comparison: PlanComparison) -> list[Headline]:
    plans = [plan for row in comparison.rows for plan in row.plans.values()]
    proven, nothing = sum(plan.proven for plan in plans), sum(plan.avoidable_bytes == 0 for plan in plans)
    slowest, total = max(plan.seconds for plan in plans), sum(plan.seconds for plan in plans)
    tiles = [
        Headline(
            f"Saved at {summary.budget}",
            percent(summary.mean_reduction, places=1),
            f"{summary.kind}; mean of {summary.compared} networks, against {summary.rival}",
        )
        for summary in comparison.summaries
        if summary.mean_reduction is not None
    ]
    return [
        *tiles,
        Headline("Proven optimal", f"{proven} of {len(plans)}", "plans, over all orders"),
        Headline("Nothing avoidable moves", f"{nothing} of {len(plans)}", "plans"),
        Headline("Slowest plan", f"{slowest:,.1f} s", f"{total:,.0f} s in all"),
    ]


def savings(comparison: PlanComparison, kind: str) -> go.Figure:
    """Draw the share of the rival's avoidable bytes that plans of a kind save, graph by budget."""
    budgets, graphs = comparison.budgets, comparison.graphs
    by_place = {row.place: row for row in comparison.rows}
    rows = [[by_place.get((graph, budget)) for budget in budgets] for graph in graphs]
    shares = [[row.reduction(row.rival, kind) if row else None for row in line] for line in rows]
    texts = [[_cell_text(row, kind) for row in line] for line in rows]
    figure = go.Figure(
        go.Heatmap(
            x=list(map(escape, budgets)),
            y=list(map(escape, graphs)),
            # More than twice the baseline's bytes is off the scale.
            z=[[None if share is None else max(-1.0, share) for share in line] for line in shares],
            zmin=-1,
            zmax=1,
            colorscale=_SHARES,
            showscale=False,
            text=texts,
            texttemplate="%{text}",
            textfont={"size": 12},
            **hover([[_hover(row) if row else "" for row in line] for line in rows]),
            hoverongaps=False,
            xgap=2,
            ygap=2,
        )
    )
    # Cells without a share have no colour; their text says why.
    for y, x in itertools.product(range(len(graphs)), range(len(budgets))):
        if shares[y][x] is None and texts[y][x]:
            place = {"x": escape(budgets[x]), "y": escape(graphs[y])}
            figure.add_annotation(**place, text=texts[y][x], showarrow=False, font={"size": 12})
    figure.update_yaxes(autorange="reversed", type="category", ticksuffix="  ", showgrid=False)
    figure.update_xaxes(side="top", type="category", showgrid=False)
    figure = styled(figure, height=110 + 26 * len(comparison.graphs))
    figure.update_layout(margin_b=16)
    return figure


def _cell_text(row: PlanRow | None, kind: str) -> str:
    plan = row.plans.get(kind) if row else None
    if row is None or plan is None:
        return "" if row is None else "does not fit"
    share = row.reduction(row.rival, kind)
    if share is None:
        return "nothing to save" if plan.avoidable_bytes == 0 else f"+{sized(plan.avoidable_bytes)}"
    return f"{100 * share:.0f} %" + (" ✓" if plan.proven else "")


def _hover(row: PlanRow) -> str:
    lines = [f"<b>{escape(row.graph)}</b> at {escape(row.budget)} = {sized(row.scratchpad_bytes)}"]
    for kind, plan in row.plans.items():
        claim = f"({escape(plan.claim)}), {plan.seconds:.1f} s"
        lines.append(f"plan, {kind}: {sized(plan.avoidable_bytes)} {claim}")
    lines += [f"{escape(method)}: {sized(moved)}" for method, moved in row.baselines.items()]
    return "<br>".join(lines)


def traffic(comparison: PlanComparison) -> go.Figure:
    """Draw the avoidable bytes of all methods as shares of the rival's; a menu chooses the budget."""
    figure = go.Figure()
    baselines = dict.fromkeys(method for row in comparison.rows for method in row.baselines)
    methods = [*(f"plan, {kind}" for kind in comparison.kinds), *baselines]
    for number, budget in enumerate(comparison.budgets):
        rows = comparison.at(budget)
        names = [escape(row.graph) for row in rows]
        scales = [row.baselines.get(row.rival, 0) or max(row.full.avoidable_bytes, 1) for row in rows]
        moved = [
            {f"plan, {kind}": plan.avoidable_bytes for kind, plan in row.plans.items()} | {**row.baselines}
            for row in rows
        ]
        for method in methods:
            figure.add_bar(
                x=names,
                y=[
                    100 * amounts[method] / scale if method in amounts else None
                    for amounts, scale in zip(moved, scales, strict=True)
                ],
                name=escape(method),
                marker={"color": _COLOURS.get(method, RUNS[0])},
                visible=number == 0,
                customdata=[_hover(row) for row in rows],
                hovertemplate=f"%{{customdata}}<br>{escape(method)}: %{{y:.1f}} %<extra></extra>",
            )
        figure.add_scatter(
            x=names,
            y=[
                100 * row.whole.bound_avoidable_bytes / scale if row.whole else None
                for row, scale in zip(rows, scales, strict=True)
            ],
            mode="markers",
            name=f"proven bound, {WHOLE}",
            marker={"symbol": "line-ew", "size": 26, "line": {"color": INK, "width": 2}},
            visible=number == 0,
            hoverinfo="skip",
        )
    if len(comparison.budgets) > 1:
        labels = [escape(budget) for budget in comparison.budgets]
        buttons = menu(labels, len(methods) + 1, y=1.05, type="buttons", direction="right")
        figure.update_layout(updatemenus=[buttons])
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_yaxes(title="share of the baseline's", ticksuffix=" %", rangemode="tozero")
    figure.update_xaxes(type="category")
    return beside(styled(figure, height=460), top=70)


COMPARISON = Comparing(
    form="loomwork-compare-plan/2",
    rows_of=rows_of,
    document=PlanComparison.document,
    tables=plan_tables,
    page=comparison_page,
)
