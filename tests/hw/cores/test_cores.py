# amaranth: UnusedElaboratable=no
"""Cores that stand alone: configurations, port tables, reset, and the text of modules."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Fragment, Module, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

import hw.cores
from hw.attention.core.command import QueryCommand
from hw.cores.comments import comments_of
from hw.cores.generate import core_name, generate_core, write_core
from hw.cores.items import item_bits
from hw.cores.kinds import CORES, find_core
from hw.cores.ports import Field, core_ports
from hw.cores.stand_alone import RESET_CYCLES, StandAlone
from hw.cores.table import ports_json, ports_page
from hw.errors import InputError
from hw.lib import axi
from hw.lib.dma.read import ReadDMA
from hw.lib.fifo import Fifo
from hw.lib.place import InlinePlacer
from sim.build.design import core_design
from tests.hw.attention.core.feeds import BarePlacer
from tests.support.gateware.streams import get, put, simulate

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "cores"
SMALL = {
    "attention": {"rows": 2, "lanes": 16, "folds": 1, "tile_keys": 16},
    "conv": {"lanes": 16, "taps": 1, "strip": False, "inputs": 8, "outputs": 8, "gather_words": 0,
             "bank_words": 64, "memory": "block", "block_words": 64, "bypass_words": 64, "tap_words": 64,
             "offset_entries": 64, "dot_words": 0, "block_pixels": 16, "port_bits": 128},
    "read-dma": {"data_width": 64, "fifo_beats": 32},
    "write-dma": {"data_width": 64, "fifo_beats": 32},
}  # fmt: skip


def written(path, **fields):
    path.write_text("".join(f"{name}: {str(value).lower()}\n" for name, value in fields.items()))
    return path


def small(name, tmp_path, **changes):
    return CORES[name].load(written(tmp_path / f"{name}.yaml", **(SMALL[name] | changes)))


def made(kind, config):
    """Return a core; it is elaborated, or Amaranth would warn, but for the cells that are placed."""
    core = kind.make(config, BarePlacer())
    Fragment.get(core, None)
    return core


# Configurations


def test_cores_are_the_attention_the_convolution_and_the_dmas():
    assert set(CORES) == set(SMALL)
    for kind in CORES.values():
        assert kind.load(None) == kind.config_type(**kind.fixed)


@pytest.mark.soak
@pytest.mark.parametrize("name", CORES)
def test_the_defaults_make_a_core(name):
    made(CORES[name], CORES[name].load(None))


def test_another_core_is_refused():
    with pytest.raises(
        InputError, match=r"^core must be one of attention, conv, read-dma, write-dma, not 'v"
    ):
        find_core("vadd")


@pytest.mark.parametrize(
    ("name", "field", "value"), [("attention", "cached_keys", 64), ("conv", "ports", 1), ("read-dma", "x", 1)]
)
def test_a_field_that_the_core_does_not_have_is_refused_with_its_line(tmp_path, name, field, value):
    path = written(tmp_path / "a.yaml", **SMALL[name], **{field: value})
    with pytest.raises(InputError) as raised:
        CORES[name].load(path)
    fields = ", ".join(CORES[name].fields)
    line = len(SMALL[name]) + 1
    assert str(raised.value).startswith(
        f"{path}:{line}: field of the core {name} must be one of {fields}, not '{field}'"
    )


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("attention", {"rows": 65}, r"a.yaml:1: rows must be from 1 to 64, not 65$"),
        ("conv", {"taps": 3}, r"a.yaml:2: taps must be 1 or 2, not 3$"),
        ("read-dma", {"fifo_beats": 3}, r"a.yaml:2: fifo_beats must be at least burst_beats \(16\), not 3$"),
        ("read-dma", {"data_width": 48}, r"data_width must be a power of two from 32 to 1024, not 48$"),
        ("write-dma", {"outstanding": 0}, r"a.yaml:3: outstanding must be at least 1, not 0$"),
        ("write-dma", {"commands": 0}, r"a.yaml:3: commands must be at least 1, not 0$"),
        ("write-dma", {"burst_beats": 5}, r"burst_beats must be a power of two from 1 to 16, not 5$"),
        ("read-dma", {"whole": 1}, r"a.yaml:3: whole must be .*, not 1$"),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_line(tmp_path, name, changes, message):
    with pytest.raises(InputError, match=message):
        CORES[name].load(written(tmp_path / "a.yaml", **(SMALL[name] | changes)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"decode": True},
            "decode must be false unless rows and streams are at least 2 and lanes a power of",
        ),
        (
            {"lanes": 128, "merge_lanes": 16, "port_bits": 128},
            "port_bits must be a power of two of at least 256",
        ),
    ],
)
def test_a_shape_that_the_core_does_not_do_is_refused(tmp_path, changes, message):
    config = small("attention", tmp_path, **changes)
    with pytest.raises(InputError, match=f"^{message}"):
        CORES["attention"].make(config, InlinePlacer())


@pytest.mark.parametrize("name", ["Core", "9a", "a-b", ""])
def test_a_name_that_is_no_identifier_is_refused(name, tmp_path):
    with pytest.raises(InputError, match=r"^name must be a lower-case identifier of Verilog, not "):
        generate_core(CORES["read-dma"], small("read-dma", tmp_path), name=name)


# Ports


class Pair(data.StructLayout):
    def __init__(self):
        super().__init__(
            {
                #: ``low``, ``high``: bounds.
                "low": signed(3),
                "high": 4,
                # Not a comment of a field.
                "nothing": 0,
                "lanes": data.ArrayLayout(signed(8), 2),  #: Numbers.
            }
        )


class Sample(wiring.Component):
    def __init__(self):
        super().__init__(
            {
                #: Pairs, one
                #: after the other.
                "i": In(stream.Signature(Pair())).array(2),
                "free": In(stream.Signature(3, always_ready=True)),
                "axi": Out(axi.ReadSignature(data_width=32)),
                "state": Out(data.StructLayout({"a": 1, "b": 2})),
                "none": Out(0),
            }
        )

    def elaborate(self, platform):
        return Module()


def test_comments_are_those_of_the_declarations():
    assert comments_of(Pair) == {"low": "Bounds.", "high": "Bounds.", "lanes": "Numbers."}
    assert comments_of(Sample) == {"i": "Pairs, one after the other."}


def test_ports_have_flat_names_widths_and_fields():
    ports = {port.name: port for port in core_ports(Sample())}
    streams = [f"i_{n}_{part}" for n in range(2) for part in ("payload", "valid", "ready")]
    assert list(ports)[: len(streams)] == streams
    assert "none" not in ports
    assert "free_ready" not in ports
    payload = ports["i_1_payload"]
    assert (payload.width, payload.is_input, payload.stream, payload.role) == (23, True, "i_1", "payload")
    assert payload.meaning == "Pairs, one after the other."
    assert payload.fields == (
        Field(name="low", offset=0, width=3, signed=True, meaning="Bounds."),
        Field(name="high", offset=3, width=4, signed=False, meaning="Bounds."),
        Field(name="nothing", offset=7, width=0, signed=False, meaning=payload.meaning),
        Field(name="lanes", offset=7, width=8, signed=True, count=2, meaning="Numbers."),
    )
    assert ports["i_0_ready"].is_handshake
    assert not payload.is_handshake
    assert not ports["i_0_ready"].is_input
    assert ports["m_axi_arvalid"].is_handshake
    assert not ports["m_axi_araddr"].is_handshake
    assert [part.name for part in ports["state"].fields] == ["a", "b"]


def test_every_port_of_the_cores_has_a_meaning_and_fields_that_fill_it(tmp_path):
    changes = {
        "conv": {"gather_words": 64},
        "attention": {"streams": 2, "decode": True, "alibi": True, "logit_cap": True},
    }
    for name, kind in CORES.items():
        for port in core_ports(made(kind, small(name, tmp_path, **changes.get(name, {})))):
            assert port.meaning or port.is_axi, f"{name}: {port.name}"
            at = 0
            for part in port.fields:
                assert part.meaning or port.is_axi, f"{name}: {port.name}.{part.name}"
                assert part.offset == at
                at += part.width * part.count
            assert at in (0, port.width)


@pytest.mark.parametrize("folds", [1, 2])
def test_a_number_that_is_always_0_is_on_the_page_and_in_no_bits(folds, tmp_path):
    kind, config = CORES["attention"], small("attention", tmp_path, folds=folds)
    module = StandAlone(made(kind, config))
    page, entries = ports_page("core", kind, config, module), ports_json(module)
    (command,) = [entry for entry in entries if entry["name"] == "i_command_payload"]
    parts = {"last_key_part", "last_value_part"}
    assert {field["name"] for field in command["fields"]} & parts == (parts if folds > 1 else set())
    for part in parts:
        assert f"| `{part}` |" in page
        assert (f"| `{part}` | none | 0 | No bits: always 0. |" in page) == (folds == 1)


def test_items_have_the_bits_of_the_fields(tmp_path):
    config = small("attention", tmp_path, folds=2)
    item = {"rows": 2, "last_key_part": 1, "last_value_part": 0, "value_units": 2, "scale": {"fraction": 9}}
    assert item_bits(QueryCommand(config), item) == 2 | 1 << 2 | 0 << 3 | 2 << 4 | 9 << 6
    assert item_bits(8, -1) == 255


# Reset


class Through(wiring.Component):
    """A queue."""

    def __init__(self):
        word = stream.Signature(8)
        super().__init__({"i": In(word), "o": Out(word)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = Fifo(8, depth=16)
        connect(m, flipped(self.i), fifo.i)
        connect(m, fifo.o, flipped(self.o))
        return m


class Flat:
    """A stream of a stand-alone module, as benches take one."""

    def __init__(self, module, name):
        self.valid, self.ready, self.payload = (
            getattr(module, f"{name}_{part}") for part in ("valid", "ready", "payload")
        )


@pytest.mark.parametrize("cycles", [RESET_CYCLES, 9])
def test_after_a_reset_nothing_old_leaves_and_nothing_new_is_lost(cycles):
    module = StandAlone(Through())
    i, o = Flat(module, "i"), Flat(module, "o")

    async def bench(ctx):
        await put(ctx, i, range(5))
        ctx.set(module.rst, 1)
        await ctx.tick()
        for _ in range(cycles - 1):
            assert not ctx.get(i.ready)
            assert not ctx.get(o.valid)
            await ctx.tick()
        ctx.set(module.rst, 0)
        await put(ctx, i, range(100, 110))  # from the first cycle on
        assert await get(ctx, o, 10) == list(range(100, 110))

    simulate(module, bench, limit=200)


def test_streams_move_as_many_cycles_after_reset_as_said():
    module = StandAlone(Through())
    seen = []

    async def bench(ctx):
        ctx.set(module.rst, 1)
        for _ in range(RESET_CYCLES):
            await ctx.tick()
        ctx.set(module.rst, 0)
        for _ in range(RESET_CYCLES + 2):
            seen.append(ctx.get(module.i_ready))
            await ctx.tick()

    simulate(module, bench, limit=50)
    assert seen == [0] * RESET_CYCLES + [1, 1]


# Text


def design_of(name):
    """Return the core of an example, which other tests use, too: generated once."""
    kind = CORES[name]
    return core_design(kind, kind.load(EXAMPLES / f"{name.replace('-', '_')}.yaml"))


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.soak] * (n == "conv")) for n in CORES])
def test_the_module_has_the_ports_of_the_table_and_names_of_its_own(name):
    design = design_of(name)
    meta = json.loads(design.files["meta.json"])
    header = re.search(rf"^module {design.name}\((.*?)\);", design.verilog, re.MULTILINE | re.DOTALL)
    body = design.verilog[header.start() :]
    assert {each.strip() for each in header[1].split(",")} == {port["name"] for port in meta["ports"]}
    for port in meta["ports"]:
        found = re.search(
            rf"^  (input|output) (?:wire |reg )?(?:\[(\d+):0\] )?{port['name']} ?;", body, re.MULTILINE
        )
        assert (found[1], int(found[2] or 0) + 1) == (port["direction"], port["width"]), port["name"]
        assert f"| `{port['name']}` |" in design.files["ports.md"]
    assert meta["files"] == list(design.files)
    assert meta["module"] == design.name
    modules = re.findall(r"^module (\S+?) ?\(", design.verilog, re.MULTILINE)
    assert all(module.lstrip("\\").startswith(design.name) for module in modules)


def test_a_chosen_name_is_that_of_all_modules(tmp_path):
    design = generate_core(CORES["read-dma"], small("read-dma", tmp_path), name="my_reader")
    modules = re.findall(r"^module (\S+?) ?\(", design.verilog, re.MULTILINE)
    assert all(module.lstrip("\\").startswith("my_reader") for module in modules)
    assert "my_reader.v" in design.files


def test_a_module_replaces_its_own_files_only(tmp_path):
    designs = {name: design_of(name) for name in ("read-dma", "write-dma")}
    write_core(designs["read-dma"], tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    write_core(designs["write-dma"], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*designs["write-dma"].files, "notes.txt"}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ports.md").write_text("mine")
    with pytest.raises(InputError, match=r"without a ports.md that is not Loomwork's"):
        write_core(designs["read-dma"], tmp_path / "other")


def test_names_of_modules():
    assert {name: core_name(kind) for name, kind in CORES.items()} == {
        "attention": "loomwork_attention_core",
        "conv": "loomwork_conv_core",
        "read-dma": "loomwork_read_dma",
        "write-dma": "loomwork_write_dma",
    }


def test_equal_input_makes_equal_text():
    config = CORES["write-dma"].load(EXAMPLES / "write_dma.yaml")
    again = generate_core(CORES["write-dma"], config)
    assert again == design_of("write-dma")
    other = generate_core(CORES["write-dma"], replace(config, commands=8))
    hashes = {json.loads(each.files["meta.json"])["config_hash"] for each in (again, other)}
    assert len(hashes) == 2


def test_public_names_are_there_and_documented():
    for name in hw.cores.__all__:
        assert getattr(hw.cores, name).__doc__ or name == "CORES", name
    assert ReadDMA is hw.cores.ReadDMA
