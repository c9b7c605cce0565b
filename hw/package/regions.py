"""Regions of a kernel as placement constraints: the instances of each, in the words of Vivado."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hw.board.regions import Region
from hw.design import Design

_MODULE = re.compile(r"^module (?:\\(?=\S+ ))?([^\s(]+) ?\((.*?)^endmodule\n", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^  \\?([^\s(]+) +\\?([^\s(]+) +\($", re.MULTILINE)


def constrained(design: Design) -> list[tuple[Region, list[str]]]:
    """Return for each region the instances that lie on its die, of a kernel that lies on several.

    They are the region's parts; of the region of the rest also the largest instances that hold no part of any
    region.  What stands beside an instance that does is left to the placer: constraints take no single cells.
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
    """Return the largest instances in a module that neither are one of the parts nor hold any."""
    for kind, name in _INSTANCE.findall(modules[module]):
        inner = f"{path}{name}"
        if any(part.startswith(f"{inner}.") for part in parts):
            yield from _rest(modules, kind, f"{inner}.", parts)
        elif inner not in parts and kind in modules:
            yield inner
