"""Running the cocotb tests of a simulator, as cocotb's runner does, without importing cocotb.

That takes half a second, most of it pytest's, which cocotb imports for the names of its exceptions.  On
either side of a simulation that is over in one.
"""

import importlib.machinery
import importlib.util
import os
import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import cocotb_tools.config
import find_libpython

from hw.child import module_path
from hw.errors import ToolError
from sim.host.process import supervise

_NOTHING = "cocotb wrote no results"
#: All that cocotb asks of pytest: the exceptions of the latter's functions.
_STAND_IN = """class raises:
    class Exception(BaseException):
        pass


skip = xfail = raises
"""


def run_tests(
    program: Path,
    *,
    module: str,
    directory: Path,
    environ: Mapping[str, str],
    arguments: Sequence[str],
    tick: Callable[[], None],
) -> str | None:
    """Run the tests of ``module`` in ``program``, with its output in ``directory/sim.log``, and return the
    message of the first failing one, None when all passed.  Without results it is how the simulator ended.

    The module must not import pytest.
    """
    directory = directory.absolute()  # the simulation runs there: a relative name would mean another place
    results, log = directory / "results.xml", directory / "sim.log"
    results.unlink(missing_ok=True)
    libraries = [str(cocotb_tools.config.libs_dir), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    with tempfile.TemporaryDirectory(prefix="loomwork-") as first, log.open("w") as output:
        Path(first, "pytest.py").write_text(_STAND_IN)
        variables = {
            **os.environ,
            "COCOTB_ANSI_OUTPUT": "0",
            "COCOTB_REWRITE_ASSERTION_FILES": "",  # would import pytest's own
            "COCOTB_RESULTS_FILE": str(results),
            "COCOTB_TEST_MODULES": module,
            "COCOTB_TOPLEVEL": program.name,
            "TOPLEVEL_LANG": "verilog",
            "GPI_USERS": f"{find_libpython.find_libpython()};{_entry_point()}",
            # Not in the program itself, which all environments with this cocotb share.
            "LD_LIBRARY_PATH": os.pathsep.join(libraries),
            "PYGPI_PYTHON_BIN": sys.executable,
            "PYTHONPATH": module_path(first),
            **environ,
        }
        supervise([str(program), *arguments], cwd=directory, environ=variables, output=output, tick=tick)
    failure = _failure(results)
    if failure == _NOTHING:
        return f"the simulator ended early ({first_error(log)})"
    return failure


def _entry_point() -> str:
    """Return the environment in which the simulator starts Python."""
    found = importlib.util.find_spec("cocotb")  # finds, and does not import
    folders = [] if found is None else found.submodule_search_locations or []
    for path in (Path(folder, "simulator") for folder in folders):
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            if (extension := path.with_name(path.name + suffix)).exists():
                return f"{extension.resolve()},initialize"
    raise ToolError("cocotb is not installed whole: its simulator module is missing")


def _failure(results: Path) -> str | None:
    """Return the message of the first failing test of a results file, None when all passed."""
    try:
        cases = list(ElementTree.parse(results).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return _NOTHING
    for case in cases:
        for problem in (*case.iter("failure"), *case.iter("error")):
            return problem.get("error_msg") or problem.get("message") or (problem.text or "").strip()
    return None if cases else _NOTHING


def first_error(log: Path) -> str:
    """Return the first line of a log that tells of an error, else its last."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return "no log was written"
    for line in lines:
        if re.search(r"%Error|\berror\b|Error:|\bFatal\b", line):
            return line.strip()
    return lines[-1].strip() if lines else "the log is empty"
