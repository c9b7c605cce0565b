"""Regions of a kernel as placement constraints of Vivado: the instances of each."""

import re
from collections.abc import Iterator

from hw.board.regions import Region
from hw.design import Design

_MODULE = re.compile(r"^module (?:\\(?=\S+ ))?([^\s(]+) ?\((.*?)^endmodule\n", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^  \\?([^\s(]+) +\\?([^\s(]+) +\($", re.MULTILINE)


def constrained(design: Design) -> list[tuple[Region, list[str]]]:
    """Return the instances of each region, for a kernel on several dies.

    They are the region's parts.  The rest region also has the largest instances without a part of any region.
    Single cells are left to the placer.
    """
    if len(design.regions) == 1:
        return []
    modules = {match[1]: match[2] for match in _MODULE.finditer(design.verilog)}
    parts = [part for region in design.regions for part in region.parts]
    rest = list(_rest(modules, design.top_name, "", parts))
    return [
        (region, [path.replace(".", "/") for path in (*region.parts, *(rest if region.rest else ()))])
        for region in design.regions
    ]


def _rest(modules: dict[str, str], module: str, path: str, parts: list[str]) -> Iterator[str]:
    """Yield the largest instances in a module that neither are nor contain one of the parts."""
    for kind, name in _INSTANCE.findall(modules[module]):
        inner = f"{path}{name}"
        if any(part.startswith(f"{inner}.") for part in parts):
            yield from _rest(modules, kind, f"{inner}.", parts)
        elif inner not in parts and kind in modules:
            yield inner
