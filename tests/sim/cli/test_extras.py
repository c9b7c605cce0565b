"""What an installation without extras can do, and what it says of the rest."""

import subprocess
import sys

import pytest

from sim.host.extras import extra_of
from tests.support.processes import told

#: Makes the modules of an extra fail to import, as where they are not installed.
PROGRAM = """
import sys
for name in ("pulp", "highspy", "ortools", "numba", "onnx"):
    sys.modules[name] = None
from sim.cli.main import main
sys.argv[1:] = {words!r}
main()
"""


def run(*words):
    program = PROGRAM.format(words=list(words))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words", [("engines",), ("boards",), ("plan", "--help"), ("schema", "scheduler"), ("schema", "network")]
)
def test_what_needs_no_planner_works_without(words):
    done = run(*words)
    assert done.returncode == 0, done.stderr


def test_the_planner_is_said_to_be_missing():
    done = run("plan", "rw40", "--scratchpad", "M_R")
    assert (done.returncode, told(done.stderr)) == (
        2,
        "loomwork: numba is missing: pip install 'loomwork[planner]'\n",
    )


def test_extras_are_those_of_the_package():
    found = [extra_of(name) for name in ("numba", "ortools.sat", "safetensors", "pyosys", "numpy")]
    assert found == ["planner", "planner", "demo", "dev", None]
