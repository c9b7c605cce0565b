"""Graphs as JSON files: read with errors that name the place, written canonically."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph

#: Value of ``format`` in a graph's JSON.
GRAPH_FORMAT = "loomwork-graph/1"

#: What pydantic calls things, and what they are called here.
_WORDS = {
    "a valid array": "a list",
    "an object": "a mapping",
    "a valid integer": "a whole number",
    "a valid string": "text",
}


def graph_to_json(graph: Graph) -> str:
    """Give the documented JSON form; equal graphs give equal bytes."""
    return to_text({"format": GRAPH_FORMAT, **to_plain(TypeAdapter(Graph), graph)})


def read_graph(path: Path) -> Graph:
    """Read a graph's JSON.

    Raises
    ------
    InputError
        When the file is not JSON, not a graph, or the graph is not one that `Graph` accepts.
    """
    data = read_json(path, GRAPH_FORMAT)
    del data["format"]
    graph: Graph = validated(TypeAdapter(Graph), data, path)
    return graph


def to_plain(adapter: TypeAdapter[Any], value: Any) -> dict[str, Any]:
    """Give a value as what JSON holds."""
    plain: dict[str, Any] = adapter.dump_python(value, mode="json", exclude_defaults=False)
    return plain


def to_text(document: dict[str, Any]) -> str:
    """One line an entry of a top-level list: a plan is read and compared by people, too."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            rows = ",\n  ".join(json.dumps(row, allow_nan=False) for row in value)
            parts.append(f" {json.dumps(key)}: [\n  {rows}\n ]")
        elif isinstance(value, dict) and "operators" in value:
            inner = to_text(value).rstrip("\n").replace("\n", "\n ")
            parts.append(f" {json.dumps(key)}: {inner}")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def read_json(path: Path, expected: str) -> dict[str, Any]:
    """Read a document whose ``format`` is ``expected``.

    Raises
    ------
    InputError
        When the file cannot be read, is not JSON, or has another format.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("file", str(path), f"a readable file ({error.strerror})") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError("file", str(path), f"JSON ({error})") from error
    found = data.get("format") if isinstance(data, dict) else None
    if found != expected:
        raise InputError(f"format of {path}", found, repr(expected))
    assert isinstance(data, dict)
    return data


def validated(adapter: TypeAdapter[Any], data: dict[str, Any], path: Path) -> Any:
    """Turn what JSON holds into a value of the adapter's type.

    Raises
    ------
    InputError
        For the first thing that does not conform: its place, its value, and what it must be.
    """
    try:
        # By way of JSON, whose strict rules are those wanted here: a list may become a tuple and text an
        # enumeration, but "4" and true are no whole numbers.
        value = adapter.validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise refusal(error, str(path)) from error
    unknown = _unknown(data, to_plain(adapter, value))
    if unknown:
        raise InputError("key", unknown, "one of the documented form", where=str(path))
    return value


def refusal(error: ValidationError, where: str) -> InputError:
    """Give the first thing wrong with a document: its place, the value, and what it must be."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return InputError(cause.field, cause.value, cause.legal, where=where)
    place = ".".join(map(str, first["loc"])) or "document"
    if first["type"] in ("missing", "missing_argument"):
        return InputError(place, "missing", "given", where=where)
    if first["type"] == "extra_forbidden":
        return InputError("key", place, "one of the documented form", where=where)
    legal = first["msg"].removeprefix("Input should be ")
    for theirs, ours in _WORDS.items():
        legal = legal.replace(theirs, ours)
    value = first["input"]
    plain = type(value).__name__ if isinstance(value, dict | list) else value
    return InputError(place, plain, legal, where=where)


def _unknown(given: Any, known: Any, place: str = "") -> str:
    """Find a key of ``given`` that validation did not take over; empty when there is none."""
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            inside = f"{place}.{key}".lstrip(".")
            found = _unknown(value, known[key], inside) if key in known else inside
            if found:
                return found
    elif isinstance(given, list) and isinstance(known, list):
        for index, (value, other) in enumerate(zip(given, known, strict=True)):
            found = _unknown(value, other, f"{place}.{index}")
            if found:
                return found
    return ""
