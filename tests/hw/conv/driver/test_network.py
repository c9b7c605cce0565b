"""Tables become launches: which layers share a job, and which jobs each job waits for."""

import numpy as np
import pytest

from hw.conv.config import ConvConfig
from hw.conv.driver.blocked import blocked_map, blocked_weights
from hw.conv.driver.network import build, row_layer
from hw.conv.driver.table import read_table
from hw.errors import InputError
from sim.engines.conv.cases import BLOCKS, SMALL
from sim.engines.conv.compare.operations import network_rows

HEAD = "name,kind,H,Cin,Cout,K,s,g,OH\n"


def test_blocks_become_jobs():
    """Layers of a unit follow each other, branches and halves are shuffled, a decoder doubles."""
    program = build(list(BLOCKS), SMALL)
    steps = {step.result: step for step in program.steps}
    names = [name for step in program.steps for name in step.name.split("+")]
    assert names == [row.name for row in BLOCKS if row.name != "dc0.off"]
    [second] = [step for name, step in steps.items() if name.endswith("s1.1.pw2")]
    assert second.rearrangement.shuffle
    assert second.bypass.part == 0
    assert second.rearrangement.split  # the next unit takes a half
    [first] = [step for name, step in steps.items() if name.startswith("s1.1.pw1")]
    assert first.source.part == 1
    [third] = [step for name, step in steps.items() if name.endswith("s1.2.pw2")]
    assert not third.rearrangement.split
    [decoder] = [step for name, step in steps.items() if name.endswith("dc0.pw")]
    assert decoder.rearrangement.double
    assert any(tensors.dot is not None for step in program.steps for tensors in step.layers)


@pytest.mark.parametrize("name", ["a", "c", "d"])
def test_useful_products_are_those_of_the_table(name):
    """Zeros of a first layer in blocks do not count, nor do layers that the generators compute."""
    rows = network_rows(name)
    counted = sum(row_layer(row).useful_macs for row in rows if not row.name.endswith(".off"))
    jobs = build(rows, ConvConfig()).workload.jobs
    assert sum(layer.useful_macs for job in jobs for layer in job.layers) == counted


def test_a_job_waits_for_its_sources():
    program = build(list(BLOCKS), SMALL)
    written, complete = {}, -1
    for n, step in enumerate(program.steps):
        read = [step.source.name] + ([step.bypass.name] if step.bypass else [])
        latest = max((written[name] for name in read if name in written), default=-1)
        if step.after:
            complete = n - 1
        assert latest <= complete
        written[step.result] = n


@pytest.mark.parametrize(("size", "kernel", "stride"), [((12, 8), 3, 4), ((9, 10), 2, 2), ((7, 7), 3, 3)])
def test_a_layer_of_blocks_is_the_layer(size, kernel, stride):
    """A stem whose windows do not overlap is a 1 x 1 convolution of blocks."""
    rng = np.random.default_rng(kernel)
    x = rng.integers(-128, 128, (3, *size), dtype=np.int8)
    w = rng.integers(-128, 128, (5, 3, kernel, kernel), dtype=np.int8)
    pad = kernel // 2
    outside = np.pad(x.astype(int), ((0, 0), (pad, stride), (pad, stride)))
    blocks, matrix = blocked_map(x, stride, (pad, pad)), blocked_weights(w, stride)
    rows, columns = (-(-side // stride) for side in size)
    assert blocks.shape == (3 * stride**2, rows, columns)
    found = np.einsum("oc,chw->ohw", matrix[:, :, 0, 0].astype(int), blocks.astype(int))
    for row, column in np.ndindex(rows, columns):
        at = outside[:, row * stride :, column * stride :][:, :kernel, :kernel]
        assert (found[:, row, column] == (w.astype(int) * at).sum(axis=(1, 2, 3))).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # The pointwise layer that computes offsets, and the one after.
        (
            ("off,pw,6,8,3,1,1,1,6", "ddw,ddw,6,8,8,3,1,8,6", "pw,pw,6,8,4,1,1,1,6"),
            r"Cout \(line 2, layer dc0.off",
        ),
        (
            ("off,pw,5,8,1,1,1,1,5", "ddw,ddw,6,8,8,3,1,8,6", "pw,pw,6,8,4,1,1,1,6"),
            r"H \(line 2, layer dc0.off",
        ),
        (
            ("off,pw,6,8,1,1,1,1,6", "ddw,dw,6,8,8,3,1,8,6", "pw,pw,6,8,4,1,1,1,6"),
            r"kind \(line 3, layer dc0.ddw",
        ),
        (
            ("off,pw,6,8,1,1,1,1,6", "ddw,ddw,6,8,8,3,1,8,6", "pw,pw,6,9,4,1,1,1,6"),
            r"Cin \(line 4, layer dc0.pw",
        ),
        (("off,pw,6,8,1,1,1,1,6", "ddw,ddw,6,8,8,4,1,8,6", "pw,pw,6,8,4,1,1,1,6"), r"Cout|kernel \(line 3, "),
    ],
)
def test_decoders_that_are_not_carried_out_are_refused(tmp_path, text, message):
    path = tmp_path / "layers.csv"
    path.write_text(HEAD + "\n".join(f"dc0.{line}" for line in text))
    with pytest.raises(InputError, match=message):
        build(read_table(path), SMALL)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ("pw1,pw,6,4,8,1,1,1,6", "dw,dw,6,8,8,3,1,8,6", "pw2,pw,6,8,5,1,1,1,6"),
            r"Cout \(line 6, layer s1.1.pw2",
        ),
        (
            ("pw1,pw,6,4,8,1,1,1,6", "dw,dw,6,9,9,3,1,9,6", "pw2,pw,6,9,4,1,1,1,6"),
            r"Cin \(line 5, layer s1.1.dw",
        ),
        (
            ("pw1,pw,6,5,8,1,1,1,6", "dw,dw,6,8,8,3,1,8,6", "pw2,pw,6,8,4,1,1,1,6"),
            r"Cin \(line 4, layer s1.1.pw1",
        ),
    ],
)
def test_shuffles_that_do_not_fit_are_refused(tmp_path, text, message):
    path = tmp_path / "layers.csv"
    before = ("s1.0.b1.pw,pw,6,4,4,1,1,1,6", "s1.0.b2.pw,pw,6,4,4,1,1,1,6")
    path.write_text(HEAD + "\n".join([*before, *(f"s1.1.{line}" for line in text)]))
    with pytest.raises(InputError, match=message):
        build(read_table(path), SMALL)


def test_a_layer_whose_windows_are_apart_takes_the_map_before_it(tmp_path):
    """Only maps that the host writes are laid out in blocks."""
    path = tmp_path / "layers.csv"
    path.write_text(HEAD + "u.a,pw,8,4,6,1,1,1,8\nu.b,conv,8,6,5,2,2,1,4\n")
    program = build(read_table(path), SMALL)
    (_, second) = program.steps
    assert (second.source.name, second.layers[0].layer.kernel) == ("u.a", (2, 2))
    assert second.size == (4, 4)
