"""The independent checker: is everything true that a plan.json says?

It shares no code with the planner: it reads the plain document, knows the four phases of a step
(`hw.scheduler`), and recomputes all else.  In order: the form; graph and steps; every operand's place; every
transfer's bytes and times; a replay of what each byte holds; the totals; what the certificate may claim.
A part is judged only when the parts before it are sound.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hw.edge import read_json
from hw.scheduler.check.form import conform
from hw.scheduler.check.replay import replay_problems
from hw.scheduler.check.space import space_problems, used_bytes
from hw.scheduler.check.transfers import transfer_problems
from hw.scheduler.check.view import View, graph_problems, view_of


def check(document: Any) -> list[str]:
    """Find what is wrong with a plan.

    Parameters
    ----------
    document : Any
        The content of a plan.json.

    Returns
    -------
    list of str
        A line for each problem; empty when all of the plan is true.
    """
    document, problems = conform(document)
    if not problems:
        problems = graph_problems(document)
    if problems:
        return problems
    view = view_of(document)
    problems = space_problems(document, view) or transfer_problems(document, view)
    if problems:
        return problems
    return [
        *replay_problems(document, view),
        *_total_problems(document, view),
        *_certificate_problems(document),
    ]


def check_file(path: Path) -> list[str]:
    """Find what is wrong with the plan in a file.

    Raises
    ------
    InputError
        When the file cannot be read as JSON.
    """
    return check(read_json(path).data)


def recomputed_totals(document: dict[str, Any]) -> dict[str, int]:
    """Give the totals that follow from a plan without problems, in bytes and transfers.

    ``peak_bytes`` is the most that is in use in one step: residency intervals, windows and buffers.
    """
    document, _ = conform(document)
    return _totals(document, view_of(document))


def _totals(document: dict[str, Any], view: View) -> dict[str, int]:
    moved = {"read": 0, "write": 0}
    for transfer in document["transfers"]:
        moved[transfer["direction"]] += transfer["size_bytes"]
    compulsory = sum(
        size for tensor, size in view.size.items() if view.is_source(tensor) or view.kind[tensor] == "output"
    )
    return {
        "offchip_read_bytes": moved["read"],
        "offchip_write_bytes": moved["write"],
        "compulsory_bytes": compulsory,
        "avoidable_bytes": moved["read"] + moved["write"] - compulsory,
        "parameter_bytes": sum(operator["weight_bytes"] for operator in document["graph"]["operators"]),
        "peak_bytes": max(used_bytes(document, view.step_count)),
        "transfers_total": len(document["transfers"]),
    }


def _total_problems(document: dict[str, Any], view: View) -> list[str]:
    totals = document["totals"]
    problems = [
        f"totals.{name} is {totals[name]}, the plan makes {value}"
        for name, value in _totals(document, view).items()
        if totals[name] != value
    ]
    least = sum(step["compute_cycles"] for step in document["steps"])
    if totals["predicted_cycles"] < least:
        problems.append(f"totals.predicted_cycles is {totals['predicted_cycles']}, the steps take {least}")
    if not 0 <= totals["exposed_cycles"] <= totals["predicted_cycles"]:
        problems.append(f"totals.exposed_cycles is {totals['exposed_cycles']}, of all predicted cycles")
    return problems


def _certificate_problems(document: dict[str, Any]) -> list[str]:
    """Find claims that the certificate's own figures do not bear."""
    certificate, moved = document["certificate"], document["totals"]["avoidable_bytes"]
    bound, order_bound = certificate["bound_avoidable_bytes"], certificate["order_bound_avoidable_bytes"]
    claim = certificate["claim"]
    problems = []
    if not 0 <= bound <= order_bound <= moved:
        problems.append(
            f"certificate: bounds {bound} and {order_bound} (of this order) do not rise to {moved}, "
            "the plan's avoidable bytes"
        )
    stated = re.fullmatch(r"bound ([0-9]+) bytes, not proven", claim)
    if stated is None and claim not in ("optimal", "optimal for this order"):
        problems.append(f"certificate: claim {claim!r} is none of the known ones")
    if stated is not None and int(stated[1]) != bound:
        problems.append(f"certificate: claim {claim!r}, but the bound is {bound}")
    if claim == "optimal" and bound != moved:
        problems.append(f"certificate: claims 'optimal' with bound {bound} for {moved} avoidable bytes")
    if claim == "optimal for this order" and order_bound != moved:
        problems.append(f"certificate: claims {claim!r} with bound {order_bound} for {moved} avoidable bytes")
    for stage in certificate["stages"]:
        name, objective, least = stage["stage"], stage["objective"], stage["bound"]
        if least > objective:
            problems.append(f"certificate: stage {name!r} has bound {least} above its objective {objective}")
        if stage["status"] == "optimal" and least != objective:
            problems.append(f"certificate: stage {name!r} is called optimal, bound {least} of {objective}")
    return problems
