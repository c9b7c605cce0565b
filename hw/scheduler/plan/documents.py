"""Plans as JSON files: read with errors that name the place, written canonically."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter

from hw.scheduler.graph.documents import read_json, to_plain, to_text, validated
from hw.scheduler.plan.plan import PLAN_FORMAT, Plan


def plan_to_json(plan: Plan) -> str:
    """Give the text of plan.json; equal plans give equal bytes."""
    return to_text(to_plain(TypeAdapter(Plan), plan))


def read_plan(path: Path) -> Plan:
    """Read a plan.json; it is not checked further than its form: see `hw.scheduler.check.check`.

    Raises
    ------
    InputError
        When the file is not JSON or not a plan.
    """
    plan: Plan = validated(TypeAdapter(Plan), read_json(path, PLAN_FORMAT), path)
    return plan
