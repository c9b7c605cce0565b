"""An engine's own kinds of file: declared by its adapter, they reach every command and no other line."""

import numpy as np
import pytest

from examples.vadd.adapter import VaddAdapter
from hw.errors import InputError
from sim.run.files import InputFile, OutputFile
from sim.run.launch_folder import read_launch, read_manifest
from sim.sweep.input.spec_file import read_spec
from tests.support.command_line import call, refused
from tests.support.vadd import register_vadd


class PairsAdapter(VaddAdapter):
    """Reads its summands from a file of pairs, and writes them added."""

    input_files = (
        InputFile(
            option="pairs",
            suffix=".txt",
            help="Pairs to add, .txt.",
            read=lambda path, config, seed: dict(zip("ab", np.loadtxt(path, np.int32).T.copy(), strict=True)),
        ),
    )
    output_files = (
        OutputFile(
            option="sums",
            help="Sums to write, .txt.",
            needs="pairs",
            write=lambda path, job: np.savetxt(path, job["a"] + job["b"], "%d"),
        ),
    )


@pytest.fixture(autouse=True)
def pairs(tmp_path, monkeypatch):
    register_vadd(monkeypatch)
    monkeypatch.setattr("examples.vadd.adapter.ADAPTER", PairsAdapter())
    monkeypatch.chdir(tmp_path)
    np.savetxt("pairs.txt", [[1, 2], [3, 4]], "%d")


def test_commands_have_the_options_that_an_adapter_declares():
    assert "--pairs" in (shown := call("sim", "vadd", "--help").stdout)
    assert "--sums" in shown
    assert "--input" not in shown
    files = ("--pairs", "pairs.txt", "--sums", "sums.txt")
    call("sim", "vadd", *files, "--output", "out.npz", "--backend", "golden")
    assert np.load("out.npz")["c"].tolist() == np.loadtxt("sums.txt").tolist() == [3, 7]


def test_a_launch_folder_keeps_the_file(tmp_path):
    call("launch", "vadd", "--pairs", "pairs.txt", "--output", "card")
    assert read_manifest(tmp_path / "card").inputs == ("pairs",)
    assert (tmp_path / "card" / "inputs" / "pairs.txt").read_text() == "1 2\n3 4\n"
    assert bytes(read_launch(tmp_path / "card").buffers[0].data) == bytes([1, 0, 0, 0, 3, 0, 0, 0])


def test_a_sweep_takes_it_as_a_workload(tmp_path):
    text = "engines: {vadd: {parameters: {fifo_beats: [64]}, workloads: {few: {%s: pairs.txt}}}}"
    (tmp_path / "a.yaml").write_text(f"boards: [u55c]\nobjectives: {{lut: min}}\n{text % 'pairs'}\n")
    asked = read_spec(tmp_path / "a.yaml").workloads["few"]
    assert asked.files == {"pairs": str(tmp_path / "pairs.txt")}
    (tmp_path / "a.yaml").write_text(f"boards: [u55c]\nobjectives: {{lut: min}}\n{text % 'pears'}\n")
    with pytest.raises(
        InputError, match=r"pears must be one of shape, weight, title, pairs.*did you mean 'pairs'\?"
    ):
        read_spec(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("sim", "vadd", "--plan", "p.json"), "--plan must be left out: the engine vadd has no such option"),
        (
            ("sim", "attention", "--pairs", "pairs.txt"),
            "--pairs must be left out: the engine attention has no",
        ),
        (("sim", "vadd", "--sums", "s.txt"), "--sums must be left out without --pairs, not 's.txt'"),
        (("sim", "vadd", "--pairs", "none.txt"), "--pairs must be a file that exists, not 'none.txt'"),
    ],
)
def test_other_options_are_refused(words, says):
    assert refused(*words).startswith(says)
