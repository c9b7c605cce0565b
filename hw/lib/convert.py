"""Conversion of components to Verilog: Amaranth's own, but memories need not have an initial content.

Amaranth writes every word of every memory into the netlist and lets Yosys carry it to an ``initial`` block.
65,536 words of 512 bits take minutes and megabytes, and UltraRAM cannot be initialised at all.  So memories
made by `hw.lib.memory.uninitialised` lose their content before the netlist is written.
"""

import contextlib
import gc
import re
from collections.abc import Iterator
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Const, Elaboratable, Fragment, MemoryInstance, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib import wiring

from hw.lib.conversion.netlist import quick_netlists
from hw.lib.conversion.yosys import written
from hw.lib.memory import NO_INIT

#: Attributes that speak of the generator, not of the hardware.
_INTERNAL = ("generator", "top", "amaranth.hierarchy", "amaranth.decoding")
_MARK = f"\n  attribute \\{NO_INIT} "
_MARK_LINE = re.compile(re.escape(_MARK) + ".*")
_ATTRIBUTE = "\n  attribute "
_MARKED = re.compile(r"\n  memory .*(\\\S+)")
_CONTENT = "\n  cell $meminit_v2 "
_MEMORY_NAME = re.compile(r'\n    parameter \\MEMID "\\(\\\S+)"')
#: Yosys names fields without bits, too, which nothing can refer to: in Verilog they would have two.
_NO_BITS = re.compile(r"\n *wire \[-1:0\] \S+ ?;(?=\n)")
_NOTE = re.compile(r"\n *\(\* .* \*\)(?=\n)")
#: A register's value before reset, as Yosys writes it: in the declaration, which linters refuse for registers
#: of processes.
_INITIAL = re.compile(r"(\n  reg (?:signed )?(?:\[\d+:\d+\] )?)(\\\S+ |\w+) = (.*);(?=\n)")


class UltraScalePlus:
    """The platform that components are elaborated for: they may place cells of UltraScale+ devices."""


class Models:
    """The platform of text for simulation: components may place models instead of multipliers
    (`hw.lib.arithmetic.lanes`).
    """


def to_verilog(component: Any, *, name: str, sources: bool = False, platform: Any = None) -> str:
    """Return the Verilog of a component.

    ``component``: its signature has the ports, see `ports`. ``name``: of the top module; modules within it
    are named ``NAME.x``. ``sources``: whether signals and statements carry the line of Python they are from,
    as attributes ``src``. ``platform``: of its elaboration, `UltraScalePlus` by default.

    Raises `ValueError` if the content of a memory that is to have none is written in a way this module does
    not know. Raises `ToolError` if Yosys fails, as for want of room.
    """
    with _emptied(component, platform or UltraScalePlus()) as emptied, uncollected(), quick_netlists():
        text = rtlil.convert(emptied, name=name, ports=ports(component), emit_src=sources)
    internal = _INTERNAL if sources else (*_INTERNAL, "src")
    removed = " ".join(f"-remove {attribute}" for attribute in internal)
    commands = [
        "proc -nomux -norom",
        "memory_collect",
        f"attrmap {removed}",
        f"attrmap -modattr {removed}",
    ]
    verilog = written(without_content(text), commands, name)
    return _INITIAL.sub(r"\1\2;\n  initial \2 = \3;", _without_empty(verilog))


def _without_empty(verilog: str) -> str:
    """Return Verilog without the fields that have no bits, and without their attributes."""
    kept, done = [], 0
    for found in _NO_BITS.finditer(verilog):
        begin = found.start()
        while _NOTE.match(verilog, before := verilog.rindex("\n", 0, begin)):
            begin = before
        kept.append(verilog[done:begin])
        done = found.end()
    return "".join((*kept, verilog[done:]))


def ports(interface: Any) -> dict[str, tuple[Value, PortDirection]]:
    """Name the ports of a component, or of the interface to one; constants, as of a stream that is always
    ready, are none.
    """
    directions = {wiring.In: PortDirection.Input, wiring.Out: PortDirection.Output}
    members = [
        ("__".join(map(str, path)), Value.cast(value), directions[member.flow])
        for path, member, value in interface.signature.flatten(interface)
    ]
    return {name: (value, way) for name, value, way in members if not isinstance(value, Const)}


def without_content(netlist: str) -> str:
    """Return ``netlist``, RTLIL as Amaranth writes it, without the content of memories marked `NO_INIT`.

    Raises `ValueError` if such a memory's content is not found exactly once.
    """
    marked = dict.fromkeys(_marked(netlist), 0)
    kept, done = [], 0
    at = netlist.find(_CONTENT) if marked else -1
    while at >= 0:
        end = netlist.index("\n  end", at)
        found = _MEMORY_NAME.search(netlist, at, end)
        place = _module(netlist, at), found and found[1]
        if place in marked:
            marked[place] += 1
            begin = at
            while netlist.startswith(_ATTRIBUTE, before := netlist.rindex("\n", 0, begin)):
                begin = before
            kept.append(netlist[done:begin])
            done = end + len("\n  end")
        at = netlist.find(_CONTENT, end)
    for (module, memory), times in marked.items():
        if times != 1:
            raise ValueError(f"content of memory {memory} of module {module} is written {times} times")
    return _MARK_LINE.sub("", "".join((*kept, netlist[done:])))


def _module(netlist: str, at: int) -> str:
    """Return the module that a place of a netlist is in."""
    begin = netlist.rindex("\nmodule ", 0, at) + len("\nmodule ")
    return netlist[begin : netlist.index("\n", begin)]


def _marked(netlist: str) -> Iterator[tuple[str, str]]:
    """List (module, memory) of the memories that are to have no content."""
    at = netlist.find(_MARK)
    while at >= 0:
        memory = at
        while netlist.startswith(_ATTRIBUTE, memory):
            memory = netlist.index("\n", memory + 1)
        found = _MARKED.match(netlist, memory)
        if found is None:
            line = netlist[memory + 1 : netlist.index("\n", memory + 1)]
            raise ValueError(f"{NO_INIT} stands before {line.strip()!r}, which is no memory")
        yield _module(netlist, at), found[1]
        at = netlist.find(_MARK, memory)


class _Elaborated(Elaboratable):
    """A component that is elaborated already; its ports are the component's."""

    def __init__(self, component: Any, fragment: Fragment) -> None:
        self._component, self._fragment = component, fragment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._component, name)

    def elaborate(self, platform: Any) -> Fragment:
        return self._fragment


@contextlib.contextmanager
def _emptied(component: Any, platform: Any) -> Iterator[Any]:
    """Return the component with no words in its memories without content: they are not written for
    nothing.
    """
    fragment = Fragment.get(component, platform)
    words = [memory._data._init._raw for memory in _memories(fragment) if NO_INIT in (memory._attrs or {})]
    contents = [list(raw) for raw in words]
    try:
        for raw in words:
            raw.clear()
        yield _Elaborated(component, fragment)
    finally:
        for raw, content in zip(words, contents, strict=True):
            raw[:] = content


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Switch the garbage collector off: a netlist is millions of objects that all stay until it is written.
    Looking for garbage in it again and again would take half of the time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _memories(fragment: Any) -> Iterator[Any]:
    if isinstance(fragment, MemoryInstance):
        yield fragment
    for subfragment, *_ in fragment.subfragments:
        yield from _memories(subfragment)
