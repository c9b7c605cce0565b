"""Boards: the numbers against a second copy, the rules they obey, and errors that name file and line."""

import dataclasses
import re
from pathlib import Path

import pytest
import yaml

from hw.board.files import BOARDS, board_names, find_board, load_board
from hw.board.form import read_facts
from hw.board.resources import Resources
from hw.errors import InputError
from tests.support.boards import small_board, small_memory

# Typed in from the product tables a second time, in their own column order:
#                 LUT      FF       BRAM36  URAM  DSP
DEVICES = {
    "u55c": (1_303_680, 2_607_360, 2016, 960, 9024),
    "u280": (1_303_680, 2_607_360, 2016, 960, 9024),
    "u50": (871_680, 1_743_360, 1344, 640, 5952),
    "zcu104": (230_400, 460_800, 312, 96, 1728),
    "ultra96v2": (70_560, 141_120, 216, 0, 360),
    "aupzu3": (70_560, 141_120, 216, 0, 360),
    "kv260": (117_120, 234_240, 144, 64, 1248),
    "u250": (1_728_000, 3_456_000, 2688, 1280, 12288),
}
# User region, by SLR; a row is LUT in thousands, BRAM36, URAM, DSP.
REGIONS = {
    "u55c": [(386, 600, 320, 2664), (364, 576, 320, 2784), (381, 600, 320, 2856)],
    "u280": [(400.8, 600, 320, 2736), (382.08, 576, 320, 2880), (380.64, 576, 320, 2880)],
    "u50": [(374.4, 564, 304, 2592), (368.16, 564, 304, 2760)],
    "zcu104": [(230.4, 312, 96, 1728)],
    "ultra96v2": [(70.56, 216, 0, 360)],
    "aupzu3": [(70.56, 216, 0, 360)],
    "kv260": [(117.12, 144, 64, 1248)],
    "u250": 4 * [(375, 576, 320, 2880)],
}
PARTS = {
    "u55c": "xcu55c-fsvh2892-2L-e",
    "u280": "xcu280-fsvh2892-2L-e",
    "u50": "xcu50-fsvh2104-2L-e",
    "zcu104": "xczu7ev-ffvc1156-2-e",
    "ultra96v2": "xczu3eg-sbva484-1-i",
    "aupzu3": "xczu3eg-sfvc784-2-e",
    "kv260": "xck26-sfvc784-2LV-c",
    "u250": "xcu250-figd2104-2L-e",
}
# Data pins x transfers a second, over all channels.
PINS = {
    ("u55c", "hbm"): 32 * 64 * 1800e6,
    ("u280", "hbm"): 32 * 64 * 1800e6,
    ("u50", "hbm"): 32 * 64 * 1800e6,
    ("u280", "ddr"): 2 * 64 * 2400e6,
    ("zcu104", "ps_ddr"): 64 * 2134e6,
    ("ultra96v2", "ps_ddr"): 32 * 1066e6,
    ("aupzu3", "ps_ddr"): 32 * 2400e6,
    ("kv260", "ps_ddr"): 64 * 2400e6,
    ("u250", "ddr"): 4 * 64 * 2400e6,
}
CAPACITY_GIB = {
    ("u55c", "hbm"): 16,
    ("u280", "hbm"): 8,
    ("u50", "hbm"): 8,
    ("u280", "ddr"): 32,
    ("zcu104", "ps_ddr"): 2,
    ("ultra96v2", "ps_ddr"): 2,
    ("aupzu3", "ps_ddr"): 8,
    ("kv260", "ps_ddr"): 4,
    ("u250", "ddr"): 64,
}


def test_the_boards_are_the_files():
    assert board_names() == sorted(DEVICES)


@pytest.mark.parametrize("name", DEVICES)
def test_resources_agree_with_the_second_copy(name):
    board = load_board(name)
    lut, ff, bram36, uram, dsp = DEVICES[name]
    assert board.device == Resources(lut=lut, ff=ff, dsp=dsp, bram36=bram36, uram=uram)
    assert board.part == PARTS[name]
    assert board.slrs == len(REGIONS[name])
    kilolut, bram36, uram, dsp = (sum(column) for column in zip(*REGIONS[name], strict=True))
    assert board.user.lut == pytest.approx(1000 * kilolut)
    assert (board.user.bram36, board.user.uram, board.user.dsp) == (bram36, uram, dsp)
    assert board.user.ff == 2 * board.user.lut


@pytest.mark.parametrize(("name", "memory"), PINS)
def test_memories_agree_with_pins_and_capacities(name, memory):
    found = next(one for one in load_board(name).memories if one.name == memory)
    assert found.peak_bytes_per_second == pytest.approx(PINS[name, memory] / 8)
    assert found.total_bytes == CAPACITY_GIB[name, memory] << 30


@pytest.mark.parametrize("name", ["u55c", "u280", "u50"])
def test_hbm_ports_are_axi3_of_16_beats(name):
    board = load_board(name)
    hbm = board.memory
    assert (hbm.name, hbm.kind, hbm.protocol) == ("hbm", "hbm2", "axi3")
    assert (hbm.channels, hbm.port_data_width, hbm.burst_beats) == (32, 256, 16)
    assert board.family == "alveo"
    assert re.fullmatch(rf"xilinx_{name}_gen3x16_xdma_\w+", board.platform)
    assert board.host.port_data_width == 512


# From two DRAM simulators and the JEDEC standard, in ns or in clocks.
HBM_NS = {"rp": 15, "ras": 34, "rc": 50, "refresh_interval": 3900}
HBM_CK = {"cas_latency": 14, "cas_write_latency": 4, "ccd_short": 2, "ccd_long": 4, "faw": 16, "data": 2}
REFRESH_NS = {"u55c": 350, "u280": 260, "u50": 260}


@pytest.mark.parametrize("name", REFRESH_NS)
def test_hbm_timing_agrees_with_the_second_copy(name):
    timing = load_board(name).memory.timing
    assert (timing.command_clock_mhz, timing.axi_clock_mhz) == (900, 450)
    for parameter, nanoseconds in {**HBM_NS, "refresh": REFRESH_NS[name]}.items():
        assert abs(getattr(timing, f"{parameter}_ck") - nanoseconds * 0.9) <= 1, parameter
    for parameter, cycles in HBM_CK.items():
        assert getattr(timing, f"{parameter}_ck") == cycles, parameter


@pytest.mark.parametrize(("name", "memory"), PINS)
def test_the_timed_pins_move_the_peak(name, memory):
    found = next(one for one in load_board(name).memories if one.name == memory)
    timing = found.timing
    bytes_per_second = timing.granule_bytes / timing.data_ck * timing.command_clock_mhz * 1e6
    assert bytes_per_second * found.channels == pytest.approx(found.peak_bytes_per_second)


@pytest.mark.parametrize("name", ["zcu104", "ultra96v2", "aupzu3", "kv260"])
def test_zynq_kernels_use_the_processor_memory_through_128_bit_ports(name):
    board = load_board(name)
    assert (board.memory.name, board.memory.port_data_width) == ("ps_ddr", 128)
    assert (board.family, board.platform, board.host) == ("zynq", None, None)


@pytest.mark.parametrize("name", DEVICES)
def test_every_number_has_a_source(name):
    facts = read_facts(find_board(name))
    assert all(len(fact.source) > 10 for fact in facts)
    named = {fact.name for fact in facts}
    assert {"part", "slrs", "clock", "device.lut", "user.uram"} <= named
    text = find_board(name).read_text()
    assert len(facts) == sum(1 for _ in sourced(yaml.safe_load(text)))


def sourced(data):
    """Find the leaves of a board file that need a source."""
    for key, value in data.items():
        if isinstance(value, dict) and key != "sources":
            yield from sourced(value)
        elif key not in ("sources", "source", "title", "family", "kind", "protocol"):
            yield value


def test_an_unknown_board_is_refused_with_the_known_ones():
    with pytest.raises(
        InputError,
        match=re.escape(
            "board must be one of aupzu3, kv260, u250, u280, u50, u55c, ultra96v2, zcu104, or a path to a"
            " .yaml file, not 'u99'"
        ),
    ):
        load_board("u99")
    with pytest.raises(InputError, match="board must be one of"):
        load_board("../boards/u55c")
    with pytest.raises(InputError, match=r"board file must be a file that exists, not 'none\.yaml'"):
        load_board("none.yaml")


def test_a_new_board_is_one_new_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text((BOARDS / "u55c.yaml").read_text().replace("300 MHz", "250 MHz"))
    board = load_board(str(path))
    assert board == dataclasses.replace(load_board("u55c"), name="mine", clock_mhz=250.0)


def edited(tmp_path, *changes, name="u280"):
    """Write the board's file with lines changed; return the line number of the last change."""
    text = (BOARDS / f"{name}.yaml").read_text()
    for old, new in changes:
        assert old in text
        line = text[: text.index(old)].count("\n") + 1
        text = text.replace(old, new, 1)
    path = tmp_path / "b.yaml"
    path.write_text(text)
    return path, line


SIZES = "one of the units B, kB, MB, GB, KiB, MiB, GiB"
RATES = "one of the units B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "slrs: ",
            "slr: ",
            "key must be one of title, family, part, platform, board_part, slrs, clock, budget,",
        ),
        ("  lut:  ", "  lutt:  ", "key must be one of lut, ff, dsp, bram36, uram, not 'device.lutt'"),
        ("protocol: axi3", "protocoll: axi3", "not 'memories.hbm.protocoll'"),
        (
            "300 MHz",
            "300",
            "clock.value must be a number above 0 with one of the units kHz, MHz, GHz",
        ),
        ("300 MHz", "300 Mhz", "not '300 Mhz'"),
        ("300 MHz", "-300 MHz", "not '-300 MHz'"),
        (
            "300 MHz",
            "3000 MHz",
            "clock must be at most 1000 MHz, faster than any UltraScale+ fabric",
        ),
        (
            "256 MiB",
            "256",
            f"channel_size.value must be a whole number above 0 with {SIZES}, not 256",
        ),
        ("256 MiB", "0.3 B", "not '0.3 B'"),
        ("256 MiB", "4095 B", "channel_size must be a multiple of 4096, not '4095 B'"),
        (
            "460.8 GB/s",
            "460.8 GB",
            f"peak.value must be a number above 0 with {RATES}, not '460.8 GB'",
        ),
        (
            "421.3 GB/s",
            "461 GB/s",
            "hbm.realistic must be at most the peak of 460.8 GB/s, not '461 GB/s'",
        ),
        (
            "256 bit",
            "250 bit",
            "port_width must be a power of two from 32 to 1024 bit, not '250 bit'",
        ),
        ("16 beats, source: pg276", "17 beats, source: pg276", "memories.hbm.burst must be at most 16"),
        ("{value: 32,", "{value: 24,", "memories.hbm.channels must be a power of two from 1 to 64, not 24"),
        ("{value: 32,", "{value: 0,", "memories.hbm.channels must be a whole number from 1 to 64, not 0"),
        ("{value: 32,", "{value: 128,", "memories.hbm.channels must be a whole number from 1 to 64, not 128"),
        ("slrs:     {value: 3", "slrs:     {value: 5", "slrs must be a whole number from 1 to 4, not 5"),
        ("256 MiB", "2000000 GiB", "channel_size.value must be at most 2^50 B, not '2000000 GiB'"),
        ("460.8 GB/s", f"1{'0' * 320} GB/s", "peak.value must be at most 2^50 B/s, not '1000"),
        ("source: ug1702", "source: ug1703", "clock.source must be a key of sources: board_store,"),
        ("{value: 32,", "{value: '32',", "memories.hbm.channels.value must be a whole number, not '32'"),
        ("value: 1303680", "value: -1", "device.lut must be a whole number of at least 0, not -1"),
        ("value: 1303680", "value: 1303680.5", "device.lut.value must be a whole number, not 1303680.5"),
        ("value: 1163520", "value: 1303681", "user.lut must be at most the device's 1303680, not 1303681"),
        (
            "{value: 1303680, source: parts}",
            "9",
            "lut must be a mapping with the keys value, source, not 9",
        ),
        (", source: parts}", "}", "device.lut.source must be given, not 'missing'"),
        ("source: parts", "source: party", "device.lut.source must be a key of sources: board_store,"),
        (
            "kind: hbm2",
            "kind: hbm9",
            "hbm.kind must be 'hbm2', 'ddr4', 'lpddr4' or 'host', not 'hbm9'",
        ),
        ("family: alveo", "family: zynq", "platform must be given for an alveo board and only for one"),
        (
            "sources:\n",
            "sources:\n  unused: nothing\n",
            "sources.unused must be the source of something in the file",
        ),
        ("title: AMD", "title: '' #", "title must be given, not ''"),
        (
            "slrs: ",
            "board_part: {value: 'xilinx.com:au280', source: parts}\nslrs: ",
            "board_part must be given for a zynq board only, not 'xilinx.com:au280'",
        ),
    ],
)
def test_a_wrong_board_file_is_refused_with_file_and_line(tmp_path, old, new, message):
    path, line = edited(tmp_path, (old, new))
    with pytest.raises(InputError) as caught:
        load_board(str(path))
    assert message in str(caught.value)
    if old not in ("sources:\n", "family: alveo"):  # reported at a later line
        assert str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ccd_short_ck: 2", "ccd_shrt_ck: 2", "key must be one of axi_clock_mhz, command_clock_mhz, "),
        ("ccd_short_ck: 2", "ccd_short_ck: 2.5", "hbm2_timing.ccd_short_ck must be a whole number, not 2.5"),
        ("ccd_short_ck: 2", "ccd_short_ck: -2", "must be a finite number of at least 0, not -2"),
        (
            "refresh_interval_ck: 3510",
            "refresh_interval_ck: 9",
            "must be more than refresh_ck + rc_ck, not 9",
        ),
        (
            "faw_ck: 16",
            "faw_ck: 16\n        rp_ck: 3",
            "rp_ck must be given once, and hbm2_timing has it too",
        ),
    ],
)
def test_a_wrong_timing_parameter_is_refused_with_file_and_line(tmp_path, old, new, message):
    path, line = edited(tmp_path, (old, new))
    with pytest.raises(InputError) as caught:
        load_board(str(path))
    assert message in str(caught.value)
    line += new.count("\n")
    assert str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize("name", ["au", "a:b:c", "a:b]; exec", ":b", "a:b:c:d:e"])
def test_a_board_part_that_vivado_cannot_know_is_refused(tmp_path, name):
    new = f"board_part: {{value: '{name}', source: parts}}\nslrs: "
    path, line = edited(tmp_path, ("slrs: ", new), name="zcu104")
    with pytest.raises(
        InputError, match="board_part must be vendor:board or vendor:board:part:version"
    ) as caught:
        load_board(str(path))
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_a_board_part_is_any_version_unless_given():
    board = load_board("zcu104")
    patterns = {
        None: "*:zcu104:*",
        "xilinx.com:kv260_som": "xilinx.com:kv260_som:*",
        "xilinx.com:kv260_som:part0:1.4": "xilinx.com:kv260_som:part0:1.4",
    }
    for name, pattern in patterns.items():
        assert dataclasses.replace(board, board_part=name).board_part_pattern == pattern


def test_a_source_of_timing_that_is_not_explained_is_refused(tmp_path):
    path, line = edited(tmp_path, ("      random_access:\n", "      guess:\n"))
    with pytest.raises(
        InputError, match=r"memories\.hbm\.timing\.guess must be a key of sources: "
    ) as caught:
        load_board(str(path))
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_rules_hold_for_boards_made_without_a_file():
    board = small_board()
    with pytest.raises(InputError, match="memories must be a list that begins with a memory of the board"):
        dataclasses.replace(board, memories=())
    with pytest.raises(InputError, match=r"memories\.1\.name must be different from the names of other"):
        dataclasses.replace(board, memories=(small_memory(), small_memory()))
    with pytest.raises(InputError, match="slrs must be a whole number from 1 to 4, not 0"):
        dataclasses.replace(board, slrs=0)
    with pytest.raises(InputError, match="timing must be HbmTiming for hbm2, not 'DdrTiming'"):
        dataclasses.replace(small_memory(), kind="hbm2")
    with pytest.raises(dataclasses.FrozenInstanceError):
        board.slrs = 2


def test_boards_stand_beside_the_packages():
    assert Path(BOARDS).name == "boards"
    assert (BOARDS.parent / "hw").is_dir()


def test_idle_latencies_and_shares_follow_from_the_timing():
    board = load_board("u55c")
    timing = board.memory.timing
    # Shuhai's closed-row read with the switch on, 62 cycles of 450 MHz, and the fabric both ways.
    assert timing.idle_read_ns == pytest.approx(62 / 0.45 + 18 + 22, abs=3)
    assert timing.idle_write_ns == pytest.approx((9 + 7 + 3) / 0.45 + 18 + 22)
    # An open row saves RCD; a refresh blocks a channel for RP and RFC.
    assert timing.idle_read_ns - timing.open_read_ns == pytest.approx(14 / 0.9)
    assert timing.refresh_ns == pytest.approx((14 + 315) / 0.9)
    assert timing.refresh_interval_ns == pytest.approx(3900)
    # Columns are bits 6 to 10, above the lower bit of bank groups; below that are the bytes of a granule.
    assert timing.column_mask == 0x7DF
    assert board.idle_read_cycles == 54
    assert board.idle_write_cycles == 26
    # Beats of one and of two granules of a channel.
    assert [board.beat_read_cycles(count) for count in (16, 32, 64)] == [54, 54, 55]
    assert [board.beat_write_cycles(count) for count in (16, 32, 64)] == [26, 26, 27]
    assert board.channel_bytes_per_cycle * 32 * 300e6 == pytest.approx(
        board.memory.realistic_bytes_per_second
    )
    assert board.host.timing.idle_read_ns == board.host.timing.first_data_ns
    assert board.host.timing.idle_write_ns == board.host.timing.write_response_ns
    assert board.host.timing.behind_ns(64) == 0
