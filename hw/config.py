"""Engine configurations: read from YAML, written as plain values, hashed, and checked against a board."""

import dataclasses
import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from hw.board import Board
from hw.board.resources import IN_PRINT
from hw.edge import Document, read_document, validate
from hw.engine import Engine
from hw.errors import InputError


def load_config(engine: Engine[Any, Any], path: Path | str | None, board: Board) -> Any:
    """Return the configuration of ``engine`` from a YAML file, or the default for ``board`` without one.

    Keys that the file leaves out keep the board's default.  Raises `InputError` with file and line for an
    unknown key, a wrong type, or a value out of range.
    """
    default = engine.default_config(board)
    if path is None:
        return default
    document = read_document(Path(path))
    completed = dataclasses.replace(document, data={**config_dict(default), **document.data})
    return validate(completed, TypeAdapter(engine.config_type))


def config_of(engine: Engine[Any, Any], given: Any, board: Board) -> Any:
    """Return a configuration of ``engine`` unchanged, or the board's default with the fields of a mapping.

    None is no field.  Raises `InputError` for an unknown field, a wrong type, or a value out of range.
    """
    if isinstance(given, engine.config_type):
        return given
    if not (given is None or isinstance(given, Mapping)):
        legal = f"a {engine.config_type.__name__}, or a mapping of its fields"
        raise InputError(f"configuration of {engine.name}", given, legal)
    fields = {**config_dict(engine.default_config(board)), **(given or {})}
    return validate(Document(path=Path("config"), data=fields), TypeAdapter(engine.config_type))


def config_dict(config: Any) -> dict[str, Any]:
    """Return a configuration as the plain values of a YAML or JSON file."""
    plain: dict[str, Any] = TypeAdapter(type(config)).dump_python(config, mode="json")
    return plain


def config_hash(engine_name: str, config: Any, board: Board) -> str:
    """Return 12 hexadecimal digits of an engine, its configuration and all numbers of the board.

    Equal digits mean equal gates and an equal simulated memory.  The clock budget and Vivado's name of
    the board do not count: they make no gates.
    """
    numbers = dataclasses.asdict(board)
    del numbers["budget"], numbers["board_part"]
    whole = {"engine": engine_name, "config": config_dict(config), "board": numbers}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def check_fits(engine: Engine[Any, Any], config: Any, board: Board) -> None:
    """Refuse an engine larger than the user's part of the board, before any work.

    Raises `InputError` for the first resource that is exceeded, or for a memory port on a channel that the
    board does not have.
    """
    need = engine.resources(config, board)
    over = need.first_over(board.user)
    if over is not None:
        raise InputError(
            f"{IN_PRINT[over]} of {engine.name}",
            getattr(need, over),
            f"at most {getattr(board.user, over)}, what {board.name} has for kernels",
        )
    for port, channel in engine.placement(config, board).items():
        if not 0 <= channel < board.memory.channels:
            raise InputError(
                f"channel of {port}",
                channel,
                f"from 0 to {board.memory.channels - 1}, the {board.memory.name} channels of {board.name}",
            )


def check_control_only(engine: Engine[Any, Any]) -> None:
    """Raise `InputError` for an engine without cells that a control-only simulation leaves out."""
    if not engine.data_cells:
        legal = "one whose control waits for no data, for a control-only simulation"
        raise InputError("engine", engine.name, legal)


def config_schema(engine: Engine[Any, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an engine's configuration file, for completion and checks in editors."""
    schema = TypeAdapter(engine.config_type).json_schema()
    documented = _field_docs(engine.config_type)
    for name, field in schema["properties"].items():
        if name in documented:
            field["description"] = documented[name]
    # No key is required: the board has a default for each.
    schema.pop("required", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": f"Loomwork {engine.name} configuration",
        "description": engine.summary,
        "additionalProperties": False,
    }


def _field_docs(config_type: type[Any]) -> dict[str, str]:
    """Read the ``#:`` comments of a class's fields, above them or on their lines, from its source."""
    docs: dict[str, str] = {}
    texts: list[str] = []
    for line in inspect.getsource(config_type).splitlines():
        code, _, text = line.partition("#:")
        texts.append(text.strip())
        if code.strip():
            if field := re.match(r"    (\w+):", code):
                docs[field[1]] = " ".join(filter(None, texts))
            texts = []
    return {name: text for name, text in docs.items() if text}
