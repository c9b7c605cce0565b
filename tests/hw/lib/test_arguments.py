"""The argument table: offsets as Vitis lays them out, and what is refused."""

import pytest

from hw.errors import InputError
from hw.lib.arguments import Argument, ArgumentKind, ArgumentTable


def scalar(name="n", doc="a number"):
    return Argument(name=name, kind=ArgumentKind.SCALAR, doc=doc)


def pointer(name="p", port="gmem0"):
    return Argument(name=name, kind=ArgumentKind.POINTER, doc="an address", port=port)


def counter(name="c"):
    return Argument(name=name, kind=ArgumentKind.COUNTER, doc="cycles")


def test_offsets_are_those_of_vitis_hls():
    # rtl_vadd: three pointers and a length at 0x10, 0x1c, 0x28, 0x34.
    table = ArgumentTable((pointer("a"), pointer("b"), pointer("c"), scalar("length")))
    assert [table.offset(name) for name in ("a", "b", "c", "length")] == [0x10, 0x1C, 0x28, 0x34]


def test_a_scalar_takes_a_word_and_a_reserved_word():
    table = ArgumentTable((scalar("n"), pointer("p"), scalar("k"), scalar("l")))
    assert [register.offset for register in table.registers] == [0x10, 0x18, 0x24, 0x2C]


def test_counters_are_not_arguments_of_the_call():
    table = ArgumentTable((counter("x"), scalar("n"), counter("y")))
    assert [argument.name for argument in table.call] == ["n"]
    assert [table.offset("x"), table.offset("n"), table.offset("y")] == [0x400, 0x10, 0x408]


def test_ports_come_in_order_of_first_use():
    table = ArgumentTable((pointer("a", "gmem1"), pointer("b", "gmem0"), pointer("c", "gmem1")))
    assert table.ports == ("gmem1", "gmem0")


@pytest.mark.parametrize("name", ["", "N", "2n", "a-b", "größe", "a b", "_n", "n\n"])
def test_name_must_be_an_identifier_everywhere(name):
    with pytest.raises(InputError, match="argument name must be a lower-case C identifier, not "):
        scalar(name)


@pytest.mark.parametrize("doc", ["", "  ", "two\nlines"])
def test_doc_is_one_line(doc):
    with pytest.raises(InputError, match="doc of argument n must be one line, not "):
        scalar(doc=doc)


def test_a_pointer_has_a_port_and_nothing_else_has():
    with pytest.raises(InputError, match="port of argument p must be given for a pointer"):
        pointer(port=None)
    with pytest.raises(InputError, match="port of argument n must be given for a pointer and only for one"):
        Argument(name="n", kind=ArgumentKind.SCALAR, doc="x", port="gmem0")
    with pytest.raises(InputError, match="port of argument p must be a lower-case C identifier"):
        pointer(port="GMEM")


def test_names_are_unique():
    with pytest.raises(InputError, match="argument name must be used once in the table, not 'n'"):
        ArgumentTable((scalar("n"), counter("n")))


def test_arguments_end_before_the_counters():
    most = ArgumentTable(tuple(pointer(f"p{index}") for index in range(84)))
    assert most.registers[-1].offset + 8 <= 0x400
    with pytest.raises(InputError, match="arguments must be few enough to end below 0x400, not 85"):
        ArgumentTable(tuple(pointer(f"p{index}") for index in range(85)))


def test_counters_end_within_the_range():
    most = ArgumentTable(tuple(counter(f"c{index}") for index in range(384)))
    assert most.counter_registers[-1].offset == 0xFF8
    with pytest.raises(InputError, match="counters must be few enough to end below 0x1000, not 385"):
        ArgumentTable(tuple(counter(f"c{index}") for index in range(385)))


def test_unknown_register_lists_those_there_are():
    with pytest.raises(InputError, match="argument must be one of n, c, not 'm'"):
        ArgumentTable((scalar("n"), counter("c"))).offset("m")
