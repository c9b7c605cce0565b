"""The ports of a stand-alone core as a table: name, direction, width, and the fields of each payload."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Shape, Value
from amaranth.lib import data, stream, wiring

from hw.cores.comments import comments_of
from hw.lib import axi

#: Prefix of an AXI port's signals, by which Vivado finds the interface.
AXI_PREFIX = "m_axi"
_HANDSHAKE = ("valid", "ready")


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of a payload: ``count`` numbers of ``width`` bits each, the first at bit ``offset``.

    ``width`` is 0 for a number that is always 0 in this configuration.
    """

    name: str  #: Path of names and indices, "" for the payload itself.
    offset: int
    width: int
    signed: bool
    count: int = 1
    meaning: str = ""  #: Comment of its declaration, or of what it is part of.


@dataclass(frozen=True, kw_only=True)
class Port:
    """A port of the module; ``signal`` is the core's own signal behind it."""

    name: str
    is_input: bool
    width: int  #: In bits.
    #: ``stream``, ``role``: name of the stream it is part of, "" for none, and its part: "valid", "ready" or
    #: "payload".
    stream: str
    role: str
    meaning: str  #: Comment of the declaration.
    fields: tuple[Field, ...]  #: Fields of a payload, lowest bits first; none for a port of one number.
    signal: Value
    is_axi: bool

    @property
    def is_handshake(self) -> bool:
        """Whether it is half of a handshake, of a stream or of AXI."""
        return self.role in _HANDSHAKE


def core_ports(core: wiring.Component) -> tuple[Port, ...]:
    """List the ports of a core's stand-alone module but clock and reset, in the order of its signature."""
    comments = comments_of(type(core))
    found = []
    for path, member, value in core.signature.flatten(core):
        signal = Value.cast(value)
        if isinstance(signal, Const) or not len(signal):
            continue
        *above, last = path
        is_axi = _is_axi(core, path)
        role, name = _role(core, path, is_axi), "_".join(map(str, path))
        if is_axi:
            name = f"{AXI_PREFIX}_{last}"
        meaning = " ".join(filter(None, (comments.get(str(path[0])), _own_comment(core, path))))
        found.append(
            Port(
                name=name,
                is_input=member.flow == wiring.In,
                width=len(signal),
                stream="_".join(map(str, above)) if role and not is_axi else "",
                role=role,
                meaning=meaning,
                fields=tuple(_fields(member.shape, "", 0, meaning)),
                signal=signal,
                is_axi=is_axi,
            )
        )
    return tuple(found)


def _is_axi(core: wiring.Component, path: tuple[Any, ...]) -> bool:
    member = core.signature.members[path[0]]
    return member.is_signature and isinstance(member.signature, axi.ReadSignature | axi.WriteSignature)


def _own_comment(core: wiring.Component, path: tuple[Any, ...]) -> str:
    """Return the comment of a member of an interface that is neither a stream nor AXI."""
    member = core.signature.members[path[0]]
    if len(path) == 1 or isinstance(member.signature, stream.Signature) or _is_axi(core, path):
        return ""
    return comments_of(type(member.signature)).get(str(path[-1]), "")


def _role(core: wiring.Component, path: tuple[Any, ...], is_axi: bool) -> str:
    """Return the part that a signal has in a handshake or stream, "" for none."""
    last = str(path[-1])
    if is_axi:
        return next((role for role in _HANDSHAKE if last.endswith(role)), "")
    member = core.signature.members[path[0]]
    return last if member.is_signature and isinstance(member.signature, stream.Signature) else ""


def _fields(shape: Any, name: str, offset: int, meaning: str) -> Iterator[Field]:
    """List the fields of a layout; an array of numbers is one field, another shape none or its own."""
    if isinstance(shape, data.StructLayout):
        comments = comments_of(type(shape)) if type(shape) is not data.StructLayout else {}
        for key, field in shape:
            own = f"{name}.{key}" if name else str(key)
            yield from _fields(field.shape, own, offset + field.offset, comments.get(str(key), meaning))
    elif isinstance(shape, data.ArrayLayout):
        element = shape.elem_shape
        if isinstance(element, data.Layout):
            for n in range(shape.length):
                place = offset + n * Shape.cast(element).width
                yield from _fields(element, f"{name}[{n}]", place, meaning)
        else:
            yield _number(element, name, offset, meaning, shape.length)
    elif name:
        yield _number(shape, name, offset, meaning, 1)


def _number(shape: Any, name: str, offset: int, meaning: str, count: int) -> Field:
    plain = Shape.cast(shape)
    return Field(
        name=name, offset=offset, width=plain.width, signed=plain.signed, count=count, meaning=meaning
    )
