"""Images of programs: read back field by field, and refused by another kernel."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import signed
from amaranth.lib import data

from hw.errors import InputError
from hw.network.attention.fields import attention_fields
from hw.network.commands import (
    AttentionCommand,
    Bounds,
    HeadTensor,
    MatrixCommand,
    Source,
    Target,
    VectorCommand,
    VectorKind,
)
from hw.network.matrix.unit_command import unit_command, unit_entries, unit_weights
from hw.network.model.image import image_size
from hw.network.normalization import channel_rows
from hw.network.program.image import (
    VERSION,
    bits_of,
    check,
    encode,
    first_words,
    limits,
    needs,
    opening_records,
    weights_digest,
)
from hw.network.program.program import Step
from hw.network.program.records import TableNumber, ram_layout, row_layout
from hw.network.vector.fields import Places, scale_row, tap_row, vector_fields
from hw.network.vector.wide_fields import channel_slots
from tests.hw.network.program.example import CONFIG, example, vector
from tests.support.gateware.quick import quick_payload

RECORD = 64


def decoded(image):
    """Return the rows of each table, in order."""
    tables = {}
    for at in range(0, len(image), RECORD):
        record = int.from_bytes(image[at : at + RECORD], "little")
        tables.setdefault(TableNumber(record & 15), []).append(record >> 4)
    return tables


def split(bits, *widths):
    """Return fields that follow each other."""
    found = []
    for width in widths:
        found.append(bits & (1 << width) - 1)
        bits >>= width
    assert not bits
    return found


def rows_of(records, width):
    """Return the rows of a RAM, which must lie side by side from row 0 on, in records of any order."""
    rows = []
    for first, count, *slots in sorted(split(record, 16, 4, *[61] * 8) for record in records):
        assert first == len(rows)
        assert not any(slots[count:])
        rows += slots[:count]
    assert not any(row >> width for row in rows)
    return rows


def payloads(records, number):
    """Return the rows of a table as plain values."""
    return [quick_payload(row_layout(number, CONFIG), record) for record in records]


def stored(layout, fields):
    """Return fields as a structure of the gates has them."""
    return quick_payload(layout, layout.const(fields).as_bits())


@pytest.fixture(scope="module")
def tables():
    return decoded(encode(example(), CONFIG))


def commands(kind):
    return [step.command for step in example().steps if isinstance(step.command, kind)]


def test_the_header_names_the_kernel_and_the_weights(tables):
    image = encode(example(), CONFIG)
    (header,) = tables[TableNumber.HEADER]
    shape = (1 << 14, 32, 2, 32, 32, 60, 100, 1 << 20, 512, 64, 32, 8, 2, 512, 512, 0, 512)
    found = split(header, 32, 12, 32, 32, 64, 32, 16, 8, 8, 8, 16, 16, 40, 20, 16, 16, 16, 16, 16, 16, 8, 16)
    assert found == [
        int.from_bytes(b"LWNI", "little"),
        VERSION,
        len(image) // RECORD,
        opening_records(image),
        weights_digest(example()),
        *shape,
    ]


def test_steps_and_transfers(tables):
    program = example()
    steps = [split(record, 2, 6, 6, 6, 7, 7, 2, 20, 20, 20, 16, 16) for record in tables[TableNumber.STEPS]]
    for step, found in zip(program.steps, steps, strict=True):
        core = int(not isinstance(step.command, MatrixCommand))
        gate = [1, 3, 1, (1 << 20) - 3, 5, 2] if step.follow else [0] * 6
        assert found == [core, *step.waits, step.wait_writes, step.wait_reads, *gate]
    assert sum(step.follow is not None for step in program.steps) == 1
    for number, listed in ((TableNumber.READS, program.reads), (TableNumber.WRITES, program.writes)):
        gather = (1, 13, 14, 26) if number == TableNumber.READS else ()
        found = [split(record, 6, 6, 6, 7, 14, 8, 9, *gather) for record in tables[number]]
        wanted = [[*each.starts, each.others, each.dram_address, each.address, each.words] for each in listed]
        for row, each in zip(wanted, listed, strict=True):
            if number == TableNumber.READS and (rows := each.gathered):
                row[6:] = [each.words // rows.rows, 1, rows.rows, rows.table, rows.table_rows - 1]
            elif gather:
                row += [0, 0, 0, 0]
        assert found == wanted
        assert any(each.gathered for each in listed) == bool(gather)


def test_matrix_commands(tables):
    program, shape = example(), CONFIG.shape
    own = [program.taps[each.first_tap :][: each.taps] for each in commands(MatrixCommand)]
    units = [
        unit_command(each, taps, shape, CONFIG.matrix)
        for each, taps in zip(commands(MatrixCommand), own, strict=True)
    ]
    feeds, drains = (
        payloads(tables[TableNumber.FEED], TableNumber.FEED),
        payloads(tables[TableNumber.DRAIN], TableNumber.DRAIN),
    )
    feed = row_layout(TableNumber.FEED, CONFIG)["first"].shape
    for unit, found, drain in zip(units, feeds, drains, strict=True):
        first, second = (stored(feed, each) for each in unit["feeds"])
        assert found["first"] == first
        assert found["first"] | found["second"] == second
        assert found["two"] == unit["two"]
        assert drain == stored(
            row_layout(TableNumber.DRAIN, CONFIG), {name: unit[name] for name in ("drain", "table")}
        )
    firsts = first_words(program, CONFIG)
    assert firsts == [0, 35 * 2]
    weights = payloads(tables[TableNumber.WEIGHTS], TableNumber.WEIGHTS)
    for command, found in zip(commands(MatrixCommand), weights, strict=True):
        assert found["weights"] == unit_weights(command, CONFIG.matrix, first=firsts[command.weights])
    # Equal ranges of taps are stored once.
    assert [found["taps"] for found in weights] == [
        {"first": 0, "count": 2, "two": 0},
        {"first": 0, "count": 2, "two": 0},
        {"first": 2, "count": 1, "two": 1},
    ]
    entries = [
        each["entry"] for n in (0, 2) for each in unit_entries(commands(MatrixCommand)[n], own[n], shape)
    ]
    layout = data.StructLayout(
        {"offset": 10, "row": 7, "column": data.ArrayLayout(7, 4), "valid": 4, "shift": 3}
    )
    assert [quick_payload(layout, row) for row in rows_of(tables[TableNumber.TAPS], layout.size)] == entries


def test_vector_commands(tables):
    program = example()
    walks = payloads(tables[TableNumber.WALKS], TableNumber.WALKS)
    loops = payloads(tables[TableNumber.LOOPS], TableNumber.LOOPS)
    places = [
        Places(),
        Places(tap=2),
        Places(tap=2, table=1),
        Places(tap=3, scale=3),
        Places(tap=2, exponential=1),
    ]
    for command, place, walk, loop in zip(commands(VectorCommand), places, walks, loops, strict=True):
        wanted = vector_fields(CONFIG.vector, command, place)
        assert set(walk) == {"first", "second", "target", "column"}
        assert walk | loop == wanted
    taps = rows_of(tables[TableNumber.VECTOR_TAPS], 42)
    layout = data.StructLayout(
        {"offset": 10, "row": data.ArrayLayout(16, 1), "column": data.ArrayLayout(16, 1)}
    )
    found = [quick_payload(layout, row) for row in taps]
    wanted = [tap_row(CONFIG.vector, program.taps[n]) for n in (0, 1, 1, 0)]
    assert [each["offset"] for each in found] == [each["offset"] for each in wanted]
    for name in ("row", "column"):
        assert [each[name][0] for each in found] == [each[name] & 0xFFFF for each in wanted]


def test_rows_of_the_other_tables(tables):
    program = example()
    scales = [row["multiplier"] | row["exponent"] << 26 for row in map(scale_row, (0.5, 0.25, 0.125, 3.5))]
    assert rows_of(tables[TableNumber.SCALES], 30) == scales
    words = rows_of(tables[TableNumber.TABLES], 32)
    for n, table in enumerate(program.tables):
        own = np.array(words[64 * n : 64 * n + 64], np.uint32)
        assert [int(own[k % 64] >> 8 * (k // 64) & 255) for k in range(256)] == (
            table.astype(int) & 255
        ).tolist()
    assert rows_of(tables[TableNumber.EXPONENTIALS], 20) == np.concatenate(program.exponentials).tolist()


def test_a_field_that_does_not_fit_is_an_error():
    layout = data.StructLayout({"low": 4, "high": data.ArrayLayout(data.StructLayout({"one": 2}), 2)})
    assert bits_of(layout, {"low": 15, "high": [{"one": 0}, {"one": 3}]}) == 0b11001111
    for wrong in (16, -1):
        with pytest.raises(OverflowError):
            bits_of(layout, {"low": wrong, "high": [{"one": 0}, {"one": 0}]})

    assert [bits_of(signed(4), each) for each in (-8, 7)] == [8, 7]
    for wrong in (-9, 8):
        with pytest.raises(OverflowError):
            bits_of(signed(4), wrong)


def test_limits_are_the_least_at_which_a_program_fits():
    program = example()
    least = limits(program)
    assert least == {
        "scratchpad_bytes": 1 << 14,
        "max_steps": 8,
        "max_transfers": 9,
        "max_region_bytes": 1014 * 64,
        "max_taps": 3,
        "vector_taps": 4,
        "scales": 4,
        "tables": 3,
        "exponentials": 2,
        **dict.fromkeys(("pixels", "channels", "attention_rows", "attention_tokens"), 0),
    }
    needs(program, CONFIG)
    # Rows of taps with shifts are other ones.
    step = next(step for step in program.steps if isinstance(step.command, MatrixCommand))
    shifted = replace(step, command=replace(step.command, shifts=(0, 7)))
    assert limits(replace(program, steps=(*program.steps, shifted)))["max_taps"] == 3 + 2
    # Transfers count a direction; rows that are used again count once.
    turned = replace(program, reads=program.writes, writes=program.reads)
    again = replace(program, steps=program.steps * 2)
    assert limits(turned)["max_transfers"] == 9
    assert limits(again) == {**least, "max_steps": 16}


@pytest.mark.parametrize(
    ("field", "program", "config"),
    [
        ("columns", {"columns": 64}, {}),
        ("scratchpad_bytes", {"scratchpad_bytes": 1 << 15}, {}),
        ("max_steps", {}, {"max_steps": 7}),
        ("max_transfers", {}, {"max_transfers": 8}),
        ("max_region_bytes", {}, {"max_region_bytes": 1010 * 64}),
        ("vector_taps", {}, {"vector_taps": 2}),
        ("scales", {}, {"scales": 2}),
        ("tables", {}, {"tables": 2}),
        ("exponentials", {"exponentials": example().exponentials * 2}, {}),
    ],
)
def test_a_program_beyond_a_kernels_limit_is_refused(field, program, config):
    with pytest.raises(InputError, match=field.removeprefix("max_")):
        encode(replace(example(), **program), replace(CONFIG, **config))


def test_more_taps_than_the_kernel_has_are_refused():
    steps = example().steps
    many = replace(steps[1].command, first_tap=0, taps=513)
    program = replace(example(), steps=(replace(steps[0], command=many),), taps=example().taps * 200)
    with pytest.raises(InputError, match="taps of the program at operator 'some' must be at most 512, the "):
        needs(program, CONFIG)


@pytest.mark.parametrize(
    ("limit", "first"),
    [
        ({"max_steps": 7}, 7),
        ({"vector_taps": 2}, 4),
        ({"scales": 2}, 4),
        ({"tables": 2}, 2),
        ({"exponentials": 2}, 7),
    ],
)
def test_the_operator_that_exceeds_a_limit_is_named(limit, first):
    program = example()
    *steps, last = (replace(step, operator=f"op{n}") for n, step in enumerate(program.steps))
    last = replace(last, command=replace(last.command, table=2))
    program = replace(program, steps=(*steps, last), exponentials=program.exponentials * 2)
    (field,) = limit
    name = field.removeprefix("max_")
    with pytest.raises(InputError, match=f"^{name} of the program at operator 'op{first}' must be at most"):
        needs(program, replace(CONFIG, **{"exponentials": 4} | limit))


def test_limits_of_transfers_name_no_operator():
    for limit in ({"scratchpad_bytes": 1 << 13}, {"max_transfers": 8}, {"max_region_bytes": 64}):
        (field,) = limit
        with pytest.raises(InputError, match=f"^{field.removeprefix('max_')} of the program must be"):
            needs(example(), replace(CONFIG, **limit))


def test_a_command_beyond_its_unit_is_refused():
    step = replace(example().steps[0], command=vector(example().steps[0].command.kind, rows=1 << 14))
    with pytest.raises(InputError, match="rows"):
        encode(replace(example(), steps=(step,)), CONFIG)


@pytest.mark.parametrize(
    ("length", "name"), [(0, "bytes"), (63, "bytes"), (1000, "bytes"), (64, "records"), (-64, "records")]
)
def test_a_truncated_image_is_refused(length, name):
    image = encode(example(), CONFIG)
    with pytest.raises(InputError, match=f"{name} of the program image"):
        check(image[:length], CONFIG)


@pytest.mark.parametrize(("byte", "name"), [(1, "magic"), (4, "version"), (6, "records")])
def test_a_damaged_header_is_refused(byte, name):
    image = bytearray(encode(example(), CONFIG))
    check(bytes(image), CONFIG)
    image[byte] ^= 64
    with pytest.raises(InputError, match=name):
        check(bytes(image), CONFIG)


@pytest.mark.parametrize(
    "other",
    [
        {"scratchpad_bytes": 1 << 15},
        {"weight_ports": 4},
        {"lanes": 16},
        {"max_steps": 61},
        {"max_transfers": 101},
        {"max_region_bytes": 1 << 21},
        {"max_taps": 1024},
        {"vector_taps": 128},
        {"scales": 64},
        {"tables": 16},
        {"exponentials": 4},
        {"columns": 64, "weight_ports": 4},
        {"port_bytes": 64, "weight_ports": 1},
    ],
)
def test_an_image_for_another_kernel_is_refused(other):
    with pytest.raises(InputError, match=f"({'|'.join(other)}) of the program image.* as of the kernel"):
        check(encode(example(), CONFIG), replace(CONFIG, **other))


def test_the_digest_changes_with_any_weight():
    program = example()
    passes = [each.copy() for each in program.passes]
    passes[1][18, 127] ^= 1
    assert weights_digest(replace(program, passes=tuple(passes))) != weights_digest(program)
    assert weights_digest(replace(program, passes=program.passes[::-1])) != weights_digest(program)


def tokens():
    """Return a program of statistics, LayerNorms of int8 and int16, and attention."""
    numbers = np.random.default_rng(1)
    norms = tuple(
        channel_rows(*numbers.normal(0, 30, (2, 90)).tolist(), bits=bits, zero=0) for bits in (8, 16)
    )
    plain = {"rows": 1, "columns": 5, "bounds": Bounds(height=1, width=1), "channels": 90, "pixel": 3}
    source = (Source(base=40, across=12),)

    def normal(norm, bits):
        target = Target(base=300, pitch=12, granules=-(-90 * bits // 128))
        own = {"target": target, "bits": bits, "norm": norm, "shift": norms[norm].shift}
        return vector(VectorKind.NORM, sources=source, **own, **plain)

    rows = HeadTensor(base=7, pitch=4, step=2)
    commands = [
        vector(VectorKind.STATS, sources=source, target=Target(base=0, pitch=0, granules=0), **plain),
        normal(1, 16),
        normal(0, 8),
        normal(1, 16),
        AttentionCommand(
            heads=2,
            queries=9,
            keys=20,
            head_dim=32,
            **dict.fromkeys(("q", "k", "v", "out"), rows),
            multiplier=40_000,
            shift=20,
            output_multiplier=70_000,
            output_shift=30,
        ),
    ]
    steps = tuple(Step(command=command, operator="some", planned=0) for command in commands)
    return replace(example(), steps=steps, norms=norms)


def test_layer_norms_and_attention():
    """LayerNorms that are used twice have their rows once; lanes that int16 do not use have none."""
    program, config = tokens(), replace(CONFIG, attention_rows=2, attention_tokens=32)
    found = decoded(encode(program, config))
    assert image_size(program, lanes=32).bytes == len(encode(program, config))
    fields = row_layout(TableNumber.LOOPS, config)
    rows = [fields.from_bits(bits).channel_row for bits in found[TableNumber.LOOPS]]
    assert rows == [0, 0, 6, 0]  # 90 channels in rows of 16 lanes, or of 32
    slots = {}
    for record in found[TableNumber.CHANNELS]:
        first, count, *some = split(record, 16, 4, *[61] * 8)
        slots |= dict(zip(range(first, first + count), some[:count], strict=True))
    layout = ram_layout(TableNumber.CHANNELS, config)
    for norm, bits, first, used in ((1, 16, 0, 16), (0, 8, 6 * 32, 32)):
        wanted = channel_slots(config.vector, program.norms[norm], bits=bits)
        for n, row in enumerate(wanted):
            assert slots.get(first + n) == (bits_of(layout, {"row": row}) if n % 32 < used else None)
    (attention,) = found[TableNumber.ATTENTION]
    wanted = attention_fields(config.attention, program.steps[-1].command)
    assert attention == bits_of(row_layout(TableNumber.ATTENTION, config), wanted)
    assert [split(bits, 2, 140)[0] for bits in found[TableNumber.STEPS]] == [1, 1, 1, 1, 2]


@pytest.mark.parametrize(
    ("field", "value"), [("attention_rows", 0), ("attention_tokens", 16), ("channels", 8), ("pixels", 4)]
)
def test_limits_of_tokens(field, value):
    config = replace(CONFIG, attention_rows=2, attention_tokens=32)
    with pytest.raises(InputError, match=f"the {field} of the kernel"):
        encode(tokens(), replace(config, **{field: value}))
