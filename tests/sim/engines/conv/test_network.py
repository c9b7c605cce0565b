"""Layer tables: what is read, which layers share a job, and what each job has to wait for."""

import numpy as np
import pytest

from hw.errors import InputError
from sim.engines.conv.adapter import ADAPTER, as_network
from sim.engines.conv.cases import BLOCKS, SMALL
from sim.engines.conv.network import blocked_map, blocked_weights, build
from sim.engines.conv.table import read_table
from sim.run.adapter import NETWORK

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


def test_a_job_waits_for_what_it_reads():
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
    """A stem whose windows have no pixel in common is a 1 x 1 convolution of blocks."""
    rng = np.random.default_rng(kernel)
    x = rng.integers(-128, 128, (3, *size), dtype=np.int8)
    w = rng.integers(-128, 128, (5, 3, kernel, kernel), dtype=np.int8)
    pad = kernel // 2
    outside = np.pad(x.astype(int), ((0, 0), (pad, stride), (pad, stride)))
    blocks, matrix = blocked_map(x, stride, pad), blocked_weights(w, stride)
    rows, columns = (-(-side // stride) for side in size)
    assert blocks.shape == (3 * stride**2, rows, columns)
    found = np.einsum("oc,chw->ohw", matrix[:, :, 0, 0].astype(int), blocks.astype(int))
    for row, column in np.ndindex(rows, columns):
        at = outside[:, row * stride :, column * stride :][:, :kernel, :kernel]
        assert (found[:, row, column] == (w.astype(int) * at).sum(axis=(1, 2, 3))).all()


def test_shuffled_maps_are_those_of_channels_in_turn():
    job = ADAPTER.job({NETWORK: as_network(list(BLOCKS)), "seed": np.array(3)}, SMALL)
    maps = ADAPTER.golden(job, SMALL)
    [step] = [step for step in job.program.steps if step.result.endswith("s1.1.pw2")]
    before = maps[step.bypass.name]
    assert (maps[step.result][::2] == before[: len(before) // 2]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,kind\na,dw\n", "must be the columns name, kind, H"),
        (HEAD, "layers of .* must be at least 1, not 0"),
        (HEAD + "a,lstm,4,4,4,3,1,4,4\n", r"kind \(.*line 2\) must be one of conv, pw, dw, ddw, not 'lstm'"),
        (HEAD + "a,dw,x,4,4,3,1,4,4\n", r"H \(.*line 2\) must be a whole number of at least 1, not 'x'"),
        (HEAD + "a,dw,4,4,4,3,1,4,3\n", r"OH \(.*line 2\) must be 4, H by s, not 3"),
        (HEAD + "a,dw,4,4,4,3,1,4,4\na,dw,4,4,4,3,1,4,4\n", "name in .* must be used once, not 'a'"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, text, message):
    path = tmp_path / "layers.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(path)


def test_what_is_no_text_is_no_table(tmp_path):
    path = tmp_path / "layers.csv"
    path.write_bytes(f"\ufeff{HEAD}a,dw,4,4,4,3,1,4,4\n".encode())  # as a spreadsheet saves UTF-8
    assert [row.name for row in read_table(path)] == ["a"]
    path.write_bytes(b"PK\x03\x04\xff\xfe")
    with pytest.raises(InputError, match=r"table of layers must be a \.csv file, not"):
        read_table(path)


def test_the_log_says_how_long_each_job_took():
    job = ADAPTER.job({NETWORK: as_network(list(BLOCKS))}, SMALL)
    ends = np.cumsum(np.arange(100, 100 + len(job.program.steps)), dtype="<u8")
    cycles = ADAPTER.job_cycles(job, SMALL, {"log": ends.view(np.uint8)})
    assert list(cycles) == [step.name for step in job.program.steps]
    assert list(cycles.values()) == list(range(100, 100 + len(cycles)))
    with pytest.raises(
        InputError, match=r"^end of job .* in the log must be above 0, the one before, not 0$"
    ):
        ADAPTER.job_cycles(job, SMALL, {"log": np.zeros_like(ends).view(np.uint8)})


def test_a_network_has_no_other_tensors():
    tensors = {NETWORK: as_network(list(BLOCKS)), "x": np.zeros(3)}
    with pytest.raises(InputError, match="tensor name must be seed"):
        ADAPTER.job(tensors, SMALL)
