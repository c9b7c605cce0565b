"""Plans as JSON files: read with errors that name the field, written canonically."""

from pathlib import Path

from pydantic import TypeAdapter

from hw.edge import read_json, validate
from hw.scheduler.graph.documents import plain, to_text
from hw.scheduler.plan.plan import PLAN_FORMAT, Plan

_PLAN = TypeAdapter(Plan)


def plan_to_json(plan: Plan) -> str:
    """Return the text of plan.json; equal plans have equal texts."""
    document = _PLAN.dump_python(plan, mode="json")
    plain(document["graph"])
    return to_text(document)


def read_plan(path: Path) -> Plan:
    """Read a plan.json; InputError when its form is wrong.  `hw.scheduler.check` checks its content."""
    return validate(read_json(path, expected=PLAN_FORMAT), _PLAN)
