"""Compulsory bytes of a launch: no schedule moves fewer, and maps between its jobs are none of them."""

from dataclasses import replace

import numpy as np
import pytest

from hw.board import load_board
from hw.conv.core.layouts import Offsets
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.network import build
from hw.conv.driver.route import Rearrangement
from hw.conv.driver.table import read_table
from hw.conv.driver.workload import ConvJob, ConvWorkload, JobMaps, MapName
from hw.conv.engine import ConvEngine
from hw.conv.model.predict import predict
from hw.conv.model.traffic import compulsory_bytes
from hw.errors import InputError
from sim.engines.conv.cases import SMALL
from tests.support.conv.sequences import Drawing

DEPTHWISE = ConvLayer(channels=64, rows=16, columns=16, outputs=64, kernel=(3, 3), pads=(1,) * 4, group=64)
POINTWISE = ConvLayer(channels=64, rows=16, columns=16, outputs=32)
WEIGHTS = 64 * 9 + 8 * 64 + 64 * 32 + 8 * 32


def maps(*pairs):
    return tuple(JobMaps(source=MapName(name=source), result=result) for source, result in pairs)


def count(*jobs, maps=(), **sizes):
    return compulsory_bytes(ConvWorkload(jobs=jobs, maps=maps), **{"weight_bits": 8} | sizes)


def test_maps_between_layers_and_between_jobs_do_not_count():
    ends = 256 * (64 + 32)
    assert count(ConvJob(layers=(DEPTHWISE, POINTWISE))) == ends + WEIGHTS
    apart = ConvJob(layers=(DEPTHWISE,)), ConvJob(layers=(POINTWISE,), after=True)
    assert count(*apart, maps=maps(("x", "y"), ("y", "z"))) == ends + WEIGHTS
    assert count(*apart) == ends + 2 * 256 * 64 + WEIGHTS


def test_a_map_of_two_jobs_counts_once_and_every_unread_half_of_a_result():
    both = ConvJob(layers=(POINTWISE,)), ConvJob(layers=(POINTWISE,))
    weights = 2 * (64 * 32 + 8 * 32)
    assert count(*both, maps=maps(("x", "y"), ("x", "z"))) == 256 * (64 + 2 * 32) + weights
    narrow = replace(POINTWISE, channels=16)
    jobs = (
        ConvJob(layers=(POINTWISE,), rearrangement=Rearrangement(split=True)),
        ConvJob(layers=(narrow,), source_half=True),
    )
    halved = (
        JobMaps(source=MapName(name="x"), result="y"),
        JobMaps(source=MapName(name="y", part=1), result="z"),
    )
    weights = 64 * 32 + 16 * 32 + 2 * 8 * 32
    assert count(*jobs, maps=halved) == 256 * (64 + 16 + 32) + weights


def test_a_doubled_shuffle_reads_two_maps_and_writes_four_times_as_many_pixels():
    job = ConvJob(layers=(POINTWISE,), rearrangement=Rearrangement(shuffle=True, double=True))
    assert count(job) == 256 * (64 + 32 + 4 * 64) + 64 * 32 + 8 * 32


@pytest.mark.parametrize(
    ("changes", "offsets"),
    [
        ({"offsets": Offsets.FREE}, 256 * 2 * 18),
        ({"offsets": Offsets.FREE, "masked": True, "offset_group": 2}, 256 * 2 * (2 * 18 + 9)),
        ({"offsets": Offsets.SQUARE}, 256 * 2),
        ({"offsets": Offsets.SQUARE, "dot": True}, 64),
    ],
    ids=["free", "masked", "square", "computed"],
)
def test_offsets_are_inputs_unless_they_are_computed(changes, offsets):
    plain = count(ConvJob(layers=(DEPTHWISE,)))
    assert count(ConvJob(layers=(replace(DEPTHWISE, **changes),))) == plain + offsets


def test_weights_have_the_bits_of_the_configuration():
    job = ConvJob(layers=(POINTWISE,))
    assert count(job) - count(job, weight_bits=4) == 64 * 32 // 2


def test_as_many_maps_as_jobs():
    with pytest.raises(InputError, match="maps must be 1, one entry for each job, not 2"):
        ConvWorkload(jobs=(ConvJob(layers=(POINTWISE,)),), maps=maps(("x", "y"), ("y", "z")))


@pytest.mark.parametrize("board", ["u55c", "zcu104"])
@pytest.mark.parametrize("seed", range(20))
def test_no_launch_moves_fewer_bytes_or_takes_fewer_cycles(board, seed):
    rng = np.random.default_rng(seed)
    config = replace(SMALL, weight_bits=int(rng.choice([4, 8])))
    drawing = Drawing(seed, config)
    drawing.launch()
    found = predict(drawing.program().workload, config, load_board(board))
    assert found.moved_bytes >= found.compulsory_bytes
    assert found.cycles_total >= found.bound_cycles


def test_a_fused_pair_takes_no_less_than_its_bound(tmp_path):
    """Its map, once counted as moved, would take longer than the launch."""
    text = "name,kind,H,Cin,Cout,K,s,g,OH\na.dw,dw,64,256,256,3,1,256,64\na.pw,pw,64,256,32,1,1,1,64\n"
    board, table = load_board("zcu104"), tmp_path / "fused.csv"
    config = ConvEngine().default_config(board)
    table.write_text(text)
    found = predict(build(read_table(table), config).workload, config, board)
    assert found.compulsory_bytes == 64 * 64 * (256 + 32) + 256 * 9 + 256 * 32 + 8 * (256 + 32)
    assert found.moved_bytes >= found.compulsory_bytes
    assert found.cycles_total >= found.bound_cycles
