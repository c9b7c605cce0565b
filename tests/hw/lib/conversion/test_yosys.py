"""Yosys within the process writes the text of a process of its own."""

import pytest
from amaranth.back import rtlil

from hw.errors import ToolError
from hw.lib.conversion import yosys
from hw.lib.conversion.yosys import written
from tests.hw.lib.conversion.test_netlist import Adder

COMMANDS = ["proc -nomux -norom", "memory_collect"]


def test_text_is_that_of_a_process(monkeypatch):
    netlist = rtlil.convert(Adder(), name="adder")
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    text = written(netlist, COMMANDS, "adder")
    assert "module adder(" in text
    monkeypatch.setattr(yosys, "_within", None)
    monkeypatch.setattr(yosys, "_PACKAGE", "another")
    assert written(netlist, COMMANDS, "adder") == text


def test_errors_name_the_module_and_end_nothing(monkeypatch):
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    with pytest.raises(ToolError, match=r"of lost: ERROR: .*no_such_command"):
        written("", ["no_such_command"], "lost")
    netlist = rtlil.convert(Adder(), name="adder")
    assert "module adder(" in written(netlist, COMMANDS, "adder")
