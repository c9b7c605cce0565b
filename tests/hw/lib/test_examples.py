"""Every public class of `hw.lib` has an example, which runs; the components in it elaborate."""

import doctest
import importlib
import inspect
import pkgutil

import pytest
from amaranth.hdl import Elaboratable, Fragment

import hw.lib

MODULES = [
    "hw.errors",
    *(info.name for info in pkgutil.walk_packages(hw.lib.__path__, "hw.lib.") if not info.ispkg),
]
#: Modules whose classes are for the converter alone: platforms and netlists.
WITHOUT = {"hw.lib.convert", "hw.lib.netlist"}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(test, clear_globs=False)
        for thing in test.globs.values():
            if isinstance(thing, Elaboratable):
                Fragment.get(thing, platform=None)
        test.globs.clear()
    assert runner.summarize().failed == 0
    if name in WITHOUT or not name.startswith("hw.lib"):
        return
    for label, thing in vars(module).items():
        if inspect.isclass(thing) and thing.__module__ == name and not label.startswith("_"):
            assert ">>>" in (thing.__doc__ or ""), f"{label} has no example"
