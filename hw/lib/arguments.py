"""The argument table of a kernel: source of register file, C header, Tcl and host script."""

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from hw.errors import InputError

#: Byte offset of the first argument, as Vitis lays out an ``ap_ctrl_hs`` kernel.
FIRST_ARGUMENT_OFFSET = 0x10
#: Byte offset of the first read-only counter; arguments end below it.
FIRST_COUNTER_OFFSET = 0x400
#: Alignment of buffers by the host's allocators, in bytes.
POINTER_ALIGN_BYTES = 4096
#: Bytes of the register file's address range: one page.
RANGE_BYTES = 0x1000

#: An identifier in Python, C, Tcl and Verilog.
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class ArgumentKind(enum.Enum):
    """ArgumentKind of a register.

    >>> ArgumentKind("pointer")
    <ArgumentKind.POINTER: 'pointer'>
    """

    SCALAR = "scalar"  # 32 bit, written by the host
    POINTER = "pointer"  # 64 bit address behind one memory port, written by the host
    COUNTER = "counter"  # 64 bit, read only, not an argument of the kernel call


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One register of the table.

    >>> Argument(name="q", kind=ArgumentKind.POINTER, port="gmem0", doc="Queries, int8").bits
    64
    """

    name: str  #: Lower-case C identifier; the name everywhere (gateware, header, host script, report).
    kind: ArgumentKind  #: `ArgumentKind.SCALAR`, `ArgumentKind.POINTER` or `ArgumentKind.COUNTER`.
    doc: str  #: One line with the unit.
    port: str | None = None  #: The memory port of a pointer (``"gmem0"``), else None.
    #: Whether each word of its register is written once, by the first write after reset, and reads as zero.
    secret: bool = False
    locks: bool = False  #: Whether any write of its register ends all writes of secret arguments.

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError("argument name", self.name, "a lower-case C identifier")
        if (self.kind is ArgumentKind.POINTER) != (self.port is not None):
            raise InputError(
                f"port of argument {self.name}", self.port, "given for a pointer and only for one"
            )
        if self.port is not None and not _NAME.fullmatch(self.port):
            raise InputError(f"port of argument {self.name}", self.port, "a lower-case C identifier")
        if "\n" in self.doc or not self.doc.strip():
            raise InputError(f"doc of argument {self.name}", self.doc, "one line")

    @property
    def bits(self) -> int:
        """Width of the register in bits."""
        return 32 if self.kind is ArgumentKind.SCALAR else 64


def scalar(name: str, doc: str, *, secret: bool = False, locks: bool = False) -> Argument:
    """Return a scalar."""
    return Argument(name=name, kind=ArgumentKind.SCALAR, doc=doc, secret=secret, locks=locks)


def pointer(name: str, port: str, doc: str) -> Argument:
    """Return a pointer behind ``port``."""
    return Argument(name=name, kind=ArgumentKind.POINTER, doc=doc, port=port)


def counters(docs: Mapping[str, str]) -> tuple[Argument, ...]:
    """Return counters, from their names and their documentation."""
    return tuple(Argument(name=name, kind=ArgumentKind.COUNTER, doc=doc) for name, doc in docs.items())


#: Bit of the counter ``status`` of every kernel: memory answered with an error.
STATUS_BUS = 32
#: With this counter in its table a kernel ends a launch after a memory error, and resets itself.  A kernel
#: with further status bits defines its own counter of this name.
(STATUS,) = counters(
    {"status": f"{STATUS_BUS}: memory answered with an error, results mean nothing, all counts are 0; else 0"}
)


@dataclass(frozen=True, kw_only=True)
class Register:
    """An argument with its byte offset into ``s_axi_control``.

    >>> rows = Argument(name="rows", kind=ArgumentKind.SCALAR, doc="Rows")
    >>> Register(argument=rows, offset=0x10).offset
    16
    """

    argument: Argument
    offset: int


@dataclass(frozen=True)
class ArgumentTable:
    """The arguments of a kernel, in call order, then its counters.

    Why
    ---
    Gates, header, Tcl, host script and testbench read each register here, so they cannot disagree.

    Example
    -------
    >>> a = Argument(name="a", kind=ArgumentKind.POINTER, port="gmem0", doc="Input, int8")
    >>> n = Argument(name="n", kind=ArgumentKind.SCALAR, doc="Elements")
    >>> table = ArgumentTable((a, n, STATUS))
    >>> [hex(table.offset(name)) for name in ("a", "n", "status")]
    ['0x10', '0x1c', '0x400']
    """

    arguments: tuple[Argument, ...]  #: Scalars and pointers in the order of the kernel call.

    def __post_init__(self) -> None:
        names = [argument.name for argument in self.arguments]
        for name in names:
            if names.count(name) > 1:
                raise InputError("argument name", name, "used once in the table")
        if any(register.offset + 12 > FIRST_COUNTER_OFFSET for register in self.registers):
            raise InputError(
                "arguments", len(self.call), f"few enough to end below {FIRST_COUNTER_OFFSET:#x}"
            )
        if any(register.offset + 8 > RANGE_BYTES for register in self.counter_registers):
            raise InputError("counters", len(self.counters), f"few enough to end below {RANGE_BYTES:#x}")

    @property
    def call(self) -> tuple[Argument, ...]:
        """Scalars and pointers, in the order of the kernel call."""
        return tuple(argument for argument in self.arguments if argument.kind is not ArgumentKind.COUNTER)

    @property
    def counters(self) -> tuple[Argument, ...]:
        """The read-only counters."""
        return tuple(argument for argument in self.arguments if argument.kind is ArgumentKind.COUNTER)

    @property
    def secrets(self) -> tuple[Argument, ...]:
        """Arguments that are written once and read as zero."""
        return tuple(argument for argument in self.call if argument.secret)

    @property
    def ports(self) -> tuple[str, ...]:
        """Memory ports named by the pointers, in order of first use."""
        return tuple(dict.fromkeys(argument.port for argument in self.call if argument.port is not None))

    @cached_property
    def registers(self) -> tuple[Register, ...]:
        """Every call argument with its byte offset; a reserved word follows each value, as in Vitis HLS."""
        return tuple(self._laid_out(self.call, FIRST_ARGUMENT_OFFSET, reserved_bytes=4))

    @cached_property
    def counter_registers(self) -> tuple[Register, ...]:
        """Every counter with its byte offset: 64-bit words without gaps."""
        return tuple(self._laid_out(self.counters, FIRST_COUNTER_OFFSET, reserved_bytes=0))

    def offset(self, name: str) -> int:
        """Return the byte offset of a register; raises `InputError` for an unknown name."""
        for register in (*self.registers, *self.counter_registers):
            if register.argument.name == name:
                return register.offset
        raise InputError("argument", name, "one of " + ", ".join(a.name for a in self.arguments))

    @staticmethod
    def _laid_out(arguments: tuple[Argument, ...], offset: int, *, reserved_bytes: int) -> Iterator[Register]:
        for argument in arguments:
            yield Register(argument=argument, offset=offset)
            offset += argument.bits // 8 + reserved_bytes
