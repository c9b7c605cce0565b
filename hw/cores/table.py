"""The port table of a stand-alone module, as a page and as data."""

from collections.abc import Iterable
from typing import Any

from hw.cores.kinds import CoreKind
from hw.cores.ports import AXI_PREFIX, Field, Port
from hw.cores.stand_alone import RESET_CYCLES, StandAlone

_CLOCK = "Clock; every port is sampled at its rising edge, and changes after it."
_RESET = (
    f"Synchronous, active high, for at least {RESET_CYCLES} cycles; streams and AXI move from {RESET_CYCLES} "
    "cycles after it falls."
)
_ROLES = {
    "valid": "an item is offered; it stays, unchanged, until `ready`",
    "ready": "the item is taken at the next edge if `valid` is high, too",
}


def ports_json(module: StandAlone) -> list[dict[str, Any]]:
    """Return every port as ``meta.json`` has it."""
    found: list[dict[str, Any]] = [
        {"name": name, "direction": "input", "width": 1, "meaning": meaning}
        for name, meaning in (("clk", _CLOCK), ("rst", _RESET))
    ]
    for port in module.core_ports:
        entry: dict[str, Any] = {"name": port.name, "direction": _direction(port), "width": port.width}
        if port.stream:
            entry |= {"stream": port.stream, "role": port.role}
        if port.fields:
            entry["fields"] = [
                {"name": part.name, "bit": part.offset, "width": part.width, "signed": part.signed}
                | ({"count": part.count} if part.count > 1 else {})
                for part in port.fields
                if part.width
            ]
        found.append(entry | {"meaning": port.meaning})
    found += [
        {
            "name": name,
            "direction": "output",
            "width": bits,
            "constant": value,
            "meaning": "Constant of AXI4.",
        }
        for name, bits, value in module.constants
    ]
    return found


def ports_page(name: str, kind: CoreKind, config: Any, module: StandAlone) -> str:
    """Return the page ``ports.md`` of a module."""
    settings = ", ".join(f"`{field}: {_yaml(value)}`" for field, value in kind.plain(config).items())
    lines = [
        f"# {name}",
        "",
        f"{kind.summary[0].upper()}{kind.summary[1:]}. Configuration: {settings}.",
        "",
        "| port | direction | bits | meaning |",
        "|---|---|---|---|",
        f"| `clk` | in | 1 | {_CLOCK} |",
        f"| `rst` | in | 1 | {_RESET} |",
    ]
    for port in module.core_ports:
        lines.append(
            f"| `{port.name}` | {'in' if port.is_input else 'out'} | {port.width} | {_meaning(port)} |"
        )
    lines += [
        f"| `{constant}` | out | {bits} | Constant {value}. |" for constant, bits, value in module.constants
    ]
    for port in module.core_ports:
        if port.fields and not port.is_axi:
            lines += ["", f"## {port.name}", ""]
            if port.meaning:
                lines += [_cell(port.meaning), ""]
            lines += ["| field | bits | number | meaning |", "|---|---|---|---|"]
            lines += _rows(port.fields, port.meaning)
    return "\n".join(lines) + "\n"


def _rows(fields: Iterable[Field], whole: str) -> list[str]:
    """Return a row for each field; its meaning only where it has its own."""
    rows = []
    for part in fields:
        if not part.width:
            # The meanings of other fields may name it.
            rows.append(f"| `{part.name}` | none | 0 | No bits: always 0. |")
            continue
        last = part.offset + part.width * part.count - 1
        sign = "signed" if part.signed else "unsigned"
        number = f"{sign}, {part.width}"
        name = f"`{part.name}`" if part.name else "all"
        if part.count > 1:
            number = f"{part.count} x {number}"
            name += f", n at bit {part.offset} + {part.width} n"
        bits = f"{last}:{part.offset}" if last > part.offset else str(last)
        rows.append(
            f"| {name} | {bits} | {number} | {_cell(part.meaning if part.meaning != whole else '')} |"
        )
    return rows


def _meaning(port: Port) -> str:
    if port.is_axi:
        channel = port.name.removeprefix(f"{AXI_PREFIX}_")
        return f"AXI4 `{channel.upper()}`."
    if port.role in _ROLES:
        return f"Of the stream `{port.stream}`: {_ROLES[port.role]}."
    text = _cell(port.meaning)
    return f"Of the stream `{port.stream}`. {text}".rstrip() if port.stream else text


def _direction(port: Port) -> str:
    return "input" if port.is_input else "output"


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    """Make a text fit a cell of a table: names as code."""
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")
