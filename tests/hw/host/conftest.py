"""Stand-ins for XRT and PYNQ in the process of the test, and launch folders of the smallest engine."""

import ctypes
import importlib.util
import json
import sys

import numpy as np
import pytest

import loomwork_host
from examples.vadd.engine import VaddConfig
from hw.board.files import find_board, load_board
from sim.run.card import write_launch
from sim.run.run import Target
from tests.hw.package.support import FAKES, build_xrt
from tests.support.vadd import register_vadd

WORDS = 40
BOARDS = {"xrt": "u55c", "pynq": "zcu104"}
IMAGES = {"xrt": "k.xclbin", "pynq": "k.bit"}


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Load the stand-in for XRT's C library: the name of a loaded library leads to it."""
    directory = build_xrt(tmp_path_factory.mktemp("xrt"))
    return ctypes.CDLL(str(directory / "libxrt_coreutil.so.2"))


class Stand:
    """The stand-in of a card, by its library; `events` are the calls to it."""

    def __init__(self, backend, module, log):
        self.backend, self.module, self.log = backend, module, log

    def open(self, **options):
        return loomwork_host.open(IMAGES[self.backend], **options)

    def events(self, *names):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [event for event in map(json.loads, lines) if not names or event[0] in names]


@pytest.fixture
def stand(library, monkeypatch, tmp_path):
    """Return a function that puts the stand-in of a library in its place."""

    def make(backend):
        name = {"xrt": "pyxrt", "pynq": "pynq"}[backend]
        spec = importlib.util.spec_from_file_location(name, FAKES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
        return Stand(backend, module, tmp_path / "log")

    return make


def write_vadd(backend, folder, *, seed=0, words=WORDS):
    """Write a launch folder of random summands for a board with this library."""
    rng, board = np.random.default_rng(seed), BOARDS[backend]
    given = folder.parent / f"{folder.name}.npz"
    np.savez(given, **summands(rng, words))
    target = Target.of("vadd", VaddConfig(), load_board(board))
    write_launch(target, find_board(board), {"input": given}, folder, seed=0)
    return folder


def summands(rng, words=WORDS):
    return {name: rng.integers(-(2**31), 2**31, words, np.int32) for name in "ab"}


@pytest.fixture
def vadd(monkeypatch):
    register_vadd(monkeypatch)


@pytest.fixture(params=sorted(BOARDS))
def card(request, stand, vadd, tmp_path):
    """Return a stand-in of either library, and a launch folder for it."""
    return stand(request.param), write_vadd(request.param, tmp_path / "card")
