"""Layer tables: what is read, which layers share a job, and what each job has to wait for."""

import numpy as np
import pytest

from hw.board import load_board
from hw.conv.core.layouts import Offsets
from hw.conv.model.predict import predict
from hw.errors import InputError
from sim.engines.conv.adapter import ADAPTER, as_network
from sim.engines.conv.cases import BLOCKS, SMALL
from sim.engines.conv.network import blocked_map, blocked_weights, build
from sim.engines.conv.table import read_table, square
from sim.run.adapter import NETWORK, UNWRITTEN

HEAD = "name,kind,H,Cin,Cout,K,s,g,OH\n"
WIDE = "name,kind,H,Cin,Cout,K,s,g,OH,W,OW,d,p\n"


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
    blocks, matrix = blocked_map(x, stride, (pad, pad)), blocked_weights(w, stride)
    rows, columns = (-(-side // stride) for side in size)
    assert blocks.shape == (3 * stride**2, rows, columns)
    found = np.einsum("oc,chw->ohw", matrix[:, :, 0, 0].astype(int), blocks.astype(int))
    for row, column in np.ndindex(rows, columns):
        at = outside[:, row * stride :, column * stride :][:, :kernel, :kernel]
        assert (found[:, row, column] == (w.astype(int) * at).sum(axis=(1, 2, 3))).all()


def predicted(rows):
    job = ADAPTER.job({NETWORK: as_network(rows)}, SMALL)
    return predict(ADAPTER.workload(job, SMALL), SMALL, load_board("u55c"))


def test_jobs_are_predicted_to_end_in_order():
    """Small jobs of both units, which do not wait for each other; their results are written in order."""
    rows = [square("u0.a", "dw", 1, 3, 3, 3, 1, 3), square("u1.a", "dw", 16, 64, 64, 3, 1, 64)]
    assert min(predicted([*rows, square("u2.a", "pw", 1, 1, 64, 1, 1, 1)]).job_cycles) > 0
    rng = np.random.default_rng(0)
    for _ in range(30):
        rows = []
        for n in range(3):
            kind = str(rng.choice(["dw", "pw", "conv"]))
            side, channels, outputs = (
                int(rng.choice(sizes)) for sizes in ((1, 4, 12), (1, 3, 40), (1, 8, 40))
            )
            group = channels if kind == "dw" else 1
            outputs = channels if kind == "dw" else outputs
            rows.append(square(f"u{n}.a", kind, side, channels, outputs, 1 if kind == "pw" else 3, 1, group))
        assert min(predicted(rows).job_cycles) > 0


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
        (
            HEAD + "a,lstm,4,4,4,3,1,4,4\n",
            r"kind \(.*line 2, layer a\) must be one of conv, pw, dw, ddw, not 'lstm'",
        ),
        (
            HEAD + "a,dw,x,4,4,3,1,4,4\n",
            r"H \(.*line 2, layer a\) must be a whole number of at least 1, not 'x'",
        ),
        (HEAD + "a,dw,4,4,4,3,1,4,3\n", r"OH \(.*line 2, layer a\) must be 4, H by s, not 3"),
        (HEAD + "a,dw,4,4,4,3,1,4,4\na,dw,4,4,4,3,1,4,4\n", r"name \(.*line 3\) must be used once, not 'a'"),
        (HEAD + "a,dw,٤,4,4,3,1,4,4\n", r"H \(.*line 2, layer a\) must be a whole number of at least 1"),
        (
            HEAD + "a,dw,4,4,4,3,1,4," + 5000 * "4",
            r"OH \(.*line 2, layer a\) must be a whole number of at least",
        ),
        (
            HEAD + "a,dw,,4,4,3,1,4,4\n",
            r"H \(.*line 2, layer a\) must be a whole number of at least 1, not ''",
        ),
        (HEAD + ",dw,4,4,4,3,1,4,4\n", r"name \(.*line 2\) must be a name of printable"),
        (HEAD + "file,dw,4,4,4,3,1,4,4\n", r"name \(.*line 2\) must be a name of printable"),
        (HEAD + "a,dw,4,4,4,3,1,4\n", r"cells \(.*line 2\) must be 9, one for each column, not 8"),
        (HEAD + "a,dw,4,4,4,3,1,4,4,4\n", r"cells \(.*line 2\) must be 9, one for each column, not 10"),
        (HEAD + 'a,dw,"4,4,4,3,1,4,4\n', r"line 2 of .* must be of comma-separated values"),
        (HEAD.replace("s,", "S,"), "must be the columns name, .*; s missing"),
        (HEAD.replace("OH", "OH,pad"), "column of .* must be one of name, kind, .*, not 'pad'"),
        (HEAD.replace("OH", "OH,H"), "column of .* must be there once, not 'H'"),
        (HEAD + "a,dw,4,4,4,3,1,1,4\n", r"g \(.*line 2, layer a\) must be 4, Cin"),
        (HEAD + "a,ddw,4,4,8,3,1,4,4\n", r"Cout \(.*line 2, layer a\) must be 4, Cin"),
        (HEAD + "a,pw,4,4,4,3,1,1,4\n", r"K \(.*line 2, layer a\) must be 1 without padding"),
        (HEAD + "a,conv,4,4,6,3,1,4,4\n", r"g \(.*line 2, layer a\) must be a divisor of 6, Cout"),
        (WIDE + "a,dw,4,4,4,3,1,4,4,8,7,,\n", r"d \(.*line 2, layer a\) must be a whole number"),
        (WIDE + "a,dw,4,4,4,3,1,4,4,8,7,1,1\n", r"OW \(.*line 2, layer a\) must be 8, what W, K, s, d and p"),
        (WIDE + "a,dw,4,4,4,3,1,4,4,8,8,1,1x1x1\n", r"p \(.*line 2, layer a\) must be a whole number, two"),
        (
            WIDE + "a,dw,4,4,4,1x2x3,1,4,4,8,8,1,1\n",
            r"K \(.*line 2, layer a\) must be a whole number, or two",
        ),
        (
            HEAD[:-1] + ",macs\na,dw,4,4,4,3,1,4,4,99\n",
            r"macs \(.*line 2, layer a\) must be 576, as the other",
        ),
    ],
)
def test_wrong_tables_are_refused(tmp_path, text, message):
    path = tmp_path / "layers.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # The pointwise layer that computes offsets, and the one behind.
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


def test_what_a_table_says_is_carried_out(tmp_path):
    """Maps that are not square; kernels, strides, dilations and pads of two axes; free offsets on chip."""
    path = tmp_path / "layers.csv"
    path.write_text(
        WIDE
        + "a,conv,9,4,6,3x2,2x1,2,5,7,8,1x2,1x2x1x1\n"
        + "b,dw,5,6,6,3,1,6,5,8,8,2,2\n"
        + "c,pw,5,6,8,1,1,1,5,8,8,1,0\n"
        + "dc0.off,pw,5,8,18,1,1,1,5,8,8,1,0\n"
        + "dc0.ddw,ddw,5,8,8,3,1,8,5,8,8,1,1\n"
        + "dc0.pw,pw,5,8,4,1,1,1,5,8,8,1,0\n"
    )
    program = build(read_table(path), SMALL)
    maps = ADAPTER.golden(ADAPTER.job({NETWORK: as_network(read_table(path))}, SMALL), SMALL)
    layers = {
        row: tensors.layer
        for step in program.steps
        for row, tensors in zip(step.name.split("+"), step.layers, strict=True)
    }
    assert (layers["a"].kernel, layers["a"].strides, layers["a"].dilations) == ((3, 2), (2, 1), (1, 2))
    assert layers["a"].pads == (1, 2, 1, 1)
    assert layers["b"].dilations == (2, 2)
    assert (layers["dc0.ddw"].offsets, layers["dc0.ddw"].dot) == (Offsets.FREE, True)
    shapes = {name.rpartition("+")[2]: found.shape for name, found in maps.items() if name != UNWRITTEN}
    assert shapes["dc0.pw"] == (4, 10, 16)
    assert [step.source.name for step in program.steps[:1]] == ["(input of a)"]


def test_a_layer_whose_windows_are_apart_takes_the_map_before_it(tmp_path):
    """Only what the host writes lies in blocks."""
    path = tmp_path / "layers.csv"
    path.write_text(HEAD + "u.a,pw,8,4,6,1,1,1,8\nu.b,conv,8,6,5,2,2,1,4\n")
    program = build(read_table(path), SMALL)
    (_, second) = program.steps
    assert (second.source.name, second.layers[0].layer.kernel) == ("u.a", (2, 2))
    assert second.size == (4, 4)


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
