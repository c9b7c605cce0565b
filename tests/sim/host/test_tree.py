"""Processes below a process."""

import os
import subprocess
import sys
import time

from sim.host.tree import kill, process, tree

TWO = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"


def test_a_tree_is_found_and_killed_as_a_whole():
    with subprocess.Popen([sys.executable, "-c", TWO]) as first:
        ends = time.monotonic() + 30
        while len(members := tree(first.pid)) < 2:
            assert time.monotonic() < ends
            time.sleep(0.01)
        parent, child = members
        assert (parent.pid, parent.parent, child.parent) == (first.pid, os.getpid(), first.pid)
        assert parent.resident_bytes > 1 << 20
        kill(members)
    assert first.returncode == -9
    while process(child.pid) is not None:
        assert time.monotonic() < ends
        time.sleep(0.01)
    assert tree(first.pid) == []
