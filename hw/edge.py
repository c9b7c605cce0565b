"""YAML and JSON become checked values: strict types, known keys, errors with their place.

A file becomes a `Document`, which for YAML has the line of every key, and a pydantic adapter validates it.
The first error in the order of the file becomes one `InputError`.  Boards, configurations, graphs and plans
are read here; no other code of ``hw`` reads files of users.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from hw.errors import InputError

T = TypeVar("T")
Location = tuple[str | int, ...]
Schema = dict[str, Any]

#: The loader of libyaml, ten times as fast, if PyYAML was built with it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Legal levels of lists and mappings in a YAML file, far above any use.
_DEEPEST = 100
#: Beginning of pydantic's messages that complete "must be ...".
_SHOULD = "Input should be "
#: Its types of errors for missing and for unknown keys.
_MISSING = ("missing", "missing_argument")
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
#: Phrases for its other types of errors.
_LEGAL = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
}


@dataclass(frozen=True, kw_only=True)
class Document:
    """A YAML or JSON file as plain values."""

    path: Path
    data: Any
    #: Line, from 1, of the key or list item at each location; None for JSON.
    lines: Mapping[Location, int] | None = None
    prefix: Location = ()  #: Location of ``data`` in the file.

    def line(self, location: Location) -> int:
        """Return the line of a location, or of its nearest parent in the file; else 1."""
        location = (*self.prefix, *location)
        while location and location not in (self.lines or {}):
            location = location[:-1]
        return (self.lines or {}).get(location, 1)

    def where(self, location: Location) -> str:
        """Return ``file:line`` of a location, or the file where lines are unknown."""
        return str(self.path) if self.lines is None else f"{self.path}:{self.line(location)}"

    def at(self, location: Location) -> Any:
        """Return the value at a location, as written in the file, or "missing"."""
        value = self.data
        for step in location:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return "missing"
        return value

    def part(self, *location: str | int) -> Document:
        """Return the document at a location, with the same lines."""
        return replace(self, data=self.at(location), prefix=(*self.prefix, *location))

    def error(self, location: Location, legal: str, *, value: Any = None) -> InputError:
        """Make the error for the value at a location, or for ``value``."""
        value = self.at(location) if value is None else value
        if isinstance(value, dict | list) and len(repr(value)) > 60:
            value = type(value).__name__
        return InputError(dotted((*self.prefix, *location)), value, legal, where=self.where(location))


def read_document(path: Path, *, text: str | None = None, top: type = dict) -> Document:
    """Read a file with one YAML mapping, or with one of another type ``top``.

    ``text``: the content, where it is not the file's own.

    Raises `InputError` when the file is missing, unreadable, not YAML, has a key twice, is nested too deep,
    or uses an alias.  Aliases can expand a small file until it fills the memory.
    """
    text = _text(path) if text is None else text
    lines: dict[Location, int] = {}
    loader = None
    depth = 0
    try:
        loader = _LOADER(text)
        for event in yaml.parse(text, Loader=_LOADER):
            where = f"{path}:{event.start_mark.line + 1 if event.start_mark else 1}"
            if isinstance(event, yaml.AliasEvent):
                raise InputError("alias", f"*{event.anchor}", "written out in full", where=where)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:  # the parser would take minutes
                raise InputError("nesting", depth, f"at most {_DEEPEST} deep", where=where)
        node = loader.get_single_node()
        if node is not None:
            lines.update(_lines(path, node, ()))
        data = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise InputError("YAML", error.problem, "well formed", where=f"{path}:{line}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("YAML", str(error).splitlines()[0], "well formed", where=f"{path}:1") from error
    finally:
        if loader is not None:
            loader.dispose()
    if not isinstance(data, top):
        legal = "a mapping of keys to values" if top is dict else "a list"
        raise InputError("file content", data, legal, where=f"{path}:1")
    return Document(path=path, data=data, lines=lines)


def read_json(path: Path, *, expected: str | None = None) -> Document:
    """Read a JSON file; with ``expected``, check its ``format`` and remove that key.

    Raises `InputError` when the file is missing, unreadable, not JSON, has a key twice, a number that is not
    finite, or another format.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if twice := [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]:
            raise InputError("key", twice[0], "given once", where=str(path))
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise InputError("value", constant, "a finite number", where=str(path))

    try:
        data = json.loads(_text(path), object_pairs_hook=once, parse_constant=refuse)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError("file", str(path), f"JSON ({error})") from error
    if expected is not None:
        found = data.pop("format", None) if isinstance(data, dict) else None
        if found != expected:
            raise InputError(f"format of {path}", found, repr(expected))
    return Document(path=path, data=data)


def _text(path: Path) -> str:
    try:
        if path.is_char_device() or path.is_block_device():
            raise InputError("file", str(path), "a file, and this is a device")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError("file", str(path), f"a readable file ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError("file", str(path), "text in UTF-8") from error


def _lines(path: Path, node: yaml.Node, location: Location) -> Iterator[tuple[Location, int]]:
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*location, index), item.start_mark.line + 1
            yield from _lines(path, item, (*location, index))
    elif isinstance(node, yaml.ScalarNode):
        kind = node.tag.rpartition(":")[2]
        line = node.start_mark.line + 1
        if kind not in ("str", "int", "float", "bool", "null"):
            raise InputError("value", node.value, "text, a number, true or false", where=f"{path}:{line}")
        if kind == "float" and not math.isfinite(yaml.SafeLoader("").construct_yaml_float(node)):
            raise InputError("value", node.value, "a finite number", where=f"{path}:{line}")
    elif isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag != "tag:yaml.org,2002:str":
                written = getattr(key, "value", "")
                raise InputError("key", written, "text; quote it if it is", where=f"{path}:{line}")
            if key.value in seen:
                raise InputError("key", key.value, "given once", where=f"{path}:{line}")
            seen.add(key.value)
            yield (*location, key.value), line
            yield from _lines(path, value, (*location, key.value))


def validate(document: Document, adapter: TypeAdapter[T]) -> T:
    """Turn a document into a value of the adapter's type.

    Raises `InputError` for the first error in the order of the file: an unknown or missing key, a wrong type,
    a value out of range.  Types are strict: ``"32"``, ``32.0`` and ``true`` are not whole numbers.
    """
    try:
        return accepted(document, adapter)
    except ValidationError as errors:
        raise refusals(document, adapter, errors)[0] from errors


def accepted(document: Document, adapter: TypeAdapter[T]) -> T:
    """Do the same, with pydantic's exception for all errors."""
    # Pydantic's strict rules for JSON fit: a list may become a tuple, text an enumeration, a mapping a
    # dataclass, but no scalar becomes another.
    return adapter.validate_json(json.dumps(document.data), strict=True, extra="forbid")


def refusals(document: Document, adapter: TypeAdapter[Any], errors: ValidationError) -> list[InputError]:
    """Translate pydantic's errors of a document, in the order of the file.

    Missing keys are last: they have no line, and are often another key misspelt.
    """
    schema = adapter.json_schema()
    found = errors.errors(include_url=False)
    found.sort(key=lambda error: (error["type"] in _MISSING, document.line(error["loc"])))
    return [_translated(document, schema, dict(error)) for error in found]


def _translated(document: Document, schema: Schema, error: dict[str, Any]) -> InputError:
    location: Location = tuple(error["loc"])
    kind = error["type"]
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        location = (*location, *cause.field.split("."))
        return document.error(location, cause.legal, value=cause.value)
    if kind in _MISSING:
        return document.error(location, "given", value="missing")
    if kind in _UNKNOWN:
        name = dotted((*document.prefix, *location))
        legal = "one of " + ", ".join(_keys(schema, location[:-1]))
        return InputError("key", name, legal, where=document.where(location))
    legal = _LEGAL.get(kind) or error["msg"].removeprefix(_SHOULD)
    if kind in ("dataclass_type", "model_type", "dict_type"):
        known = ", ".join(_keys(schema, location))
        legal = f"a mapping with the keys {known}" if known else "a mapping of keys to values"
    return document.error(location, legal, value=error["input"])


def dotted(location: Location) -> str:
    """Return a location as ``memories.hbm.peak``."""
    return ".".join(str(step) for step in location)


def _keys(schema: Schema, location: Location) -> Schema:
    """Return the keys of a JSON Schema at a location."""
    here = _resolved(schema, schema)
    for step in location:
        below = here.get("properties", {}).get(step, here.get("additionalProperties", here.get("items", {})))
        here = _resolved(schema, below)
    keys: Schema = here.get("properties", {})
    return keys


def _resolved(schema: Schema, part: Any) -> Schema:
    """Follow references; of several alternatives take the one with keys."""
    if not isinstance(part, dict):
        return {}
    if "$ref" in part:
        return _resolved(schema, schema["$defs"][part["$ref"].rpartition("/")[2]])
    for alternative in part.get("anyOf", ()):
        chosen = _resolved(schema, alternative)
        if "properties" in chosen:
            return chosen
    return part
