"""Graphs as JSON files: read with errors that name the line, written canonically."""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from hw.edge import read_json, validate
from hw.scheduler.graph.graph import Graph

#: Value of ``format`` in a graph's JSON.
GRAPH_FORMAT = "loomwork-graph/1"

_GRAPH = TypeAdapter(Graph)


def graph_to_json(graph: Graph) -> str:
    """Return the documented JSON form; equal graphs have equal bytes."""
    return to_text({"format": GRAPH_FORMAT, **plain(_GRAPH.dump_python(graph, mode="json"))})


def plain(graph: dict[str, Any]) -> dict[str, Any]:
    """Remove ``least_cycles`` of 0, in place, from the operators of a graph's document."""
    waiting = list(graph["operators"])
    while waiting:
        operator = waiting.pop()
        waiting += operator["members"]
        if not operator["least_cycles"]:
            del operator["least_cycles"]
    return graph


def read_graph(path: Path) -> Graph:
    """Read a graph's JSON; InputError for another document, or a graph that `Graph` refuses."""
    return validate(read_json(path, expected=GRAPH_FORMAT), _GRAPH)


def to_text(document: dict[str, Any]) -> str:
    """Write each entry of a top-level list on one line, for human readers and comparisons."""
    parts = []
    for key, value in document.items():
        text = json.dumps(value, allow_nan=False)
        if isinstance(value, list) and value:
            rows = ",\n  ".join(json.dumps(row, allow_nan=False) for row in value)
            text = f"[\n  {rows}\n ]"
        elif isinstance(value, dict) and "operators" in value:
            text = to_text(value).rstrip("\n").replace("\n", "\n ")
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
