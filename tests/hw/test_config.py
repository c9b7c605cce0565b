"""Engine configurations: strict YAML with file and line, defaults, hash, fit and editor schema."""

import dataclasses
import re

import jsonschema
import pytest

from hw.board.resources import Resources
from hw.config import check_fits, config_dict, config_hash, config_schema, load_config
from hw.errors import InputError
from hw.registry import ENGINES, find_engine
from tests.support.boards import small_board


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shape:
    """A shape."""

    #: Rows: 1 to 64,
    #: or fewer.
    rows: int = 4
    mode: str = "dense"  #: How.
    scale: float = 1.0
    sizes: tuple[int, ...] = (1, 2)  #: Sizes.

    def __post_init__(self):
        if not 1 <= self.rows <= 64:
            raise InputError("rows", self.rows, "from 1 to 64")


class ToyEngine:
    name = "toy"
    summary = "A toy."
    config_type = Shape

    def __init__(self, *, lut=10, channel=0):
        self.lut = lut
        self.channel = channel

    def default_config(self, board):
        return Shape(rows=8)

    def resources(self, config, board):
        return Resources(lut=self.lut, ff=1, dsp=config.rows, bram36=0, uram=0)

    def placement(self, config, board):
        return {"gmem0": 0, "gmem1": self.channel}


@pytest.fixture
def load(tmp_path):
    def load(text):
        path = tmp_path / "c.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_config(ToyEngine(), path, small_board())

    return load


def test_without_a_file_the_default_of_the_board_is_used():
    assert load_config(ToyEngine(), None, small_board()) == Shape(rows=8)


def test_keys_of_the_file_win_and_the_others_keep_the_default(load):
    assert load("mode: sparse\n") == Shape(rows=8, mode="sparse")
    assert load("sizes: [3, 4, 5]\nscale: 2\nrows: 0x10\n") == Shape(rows=16, scale=2.0, sizes=(3, 4, 5))


KEYS = "rows, mode, scale, sizes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# a comment\nrowz: 4\n", f"c.yaml:2: key must be one of {KEYS}, not 'rowz'"),
        ("rows: '32'\n", "c.yaml:1: rows must be a whole number, not '32'"),
        ("\nrows: 32.0\n", "c.yaml:2: rows must be a whole number, not 32.0"),
        ("rows: 32.5\n", "c.yaml:1: rows must be a whole number, not 32.5"),
        ("rows: true\n", "c.yaml:1: rows must be a whole number, not True"),
        ("rows:\n", "c.yaml:1: rows must be a whole number, not None"),
        ("rows: {a: 1}\n", "c.yaml:1: rows must be a whole number, not {'a': 1}"),
        ("mode: dense\nrows: 0\n", "c.yaml:2: rows must be from 1 to 64, not 0"),
        ("rows: -3\n", "c.yaml:1: rows must be from 1 to 64, not -3"),
        ("mode: 3\n", "c.yaml:1: mode must be text, not 3"),
        ("scale: fast\n", "c.yaml:1: scale must be a number, not 'fast'"),
        ("scale: .nan\n", "c.yaml:1: value must be a finite number, not '.nan'"),
        ("scale: -.inf\n", "c.yaml:1: value must be a finite number, not '-.inf'"),
        ("sizes: 3\n", "c.yaml:1: sizes must be a list, not 3"),
        ("sizes:\n- 1\n- x\n", "c.yaml:3: sizes.1 must be a whole number, not 'x'"),
        ("rows: 4\nrows: 5\n", "c.yaml:2: key must be given once, not 'rows'"),
        ("mode: 2020-01-01\n", "c.yaml:1: value must be text, a number, true or false, not '2020-01-01'"),
        ("rows: &a 4\nscale: *a\n", "c.yaml:2: alias must be written out in full, not '*a'"),
        ("4: 5\n", "c.yaml:1: key must be text; quote it if it is, not '4'"),
        ("rows: [1\n", "YAML must be well formed"),
        ("a: !!python/none x\n", "c.yaml:1: value must be text, a number, true or false, not 'x'"),
        ("--- {}\n--- {}\n", "YAML must be well formed"),
        ("\0", "YAML must be well formed"),
        ("- 4\n", "c.yaml:1: file content must be a mapping of keys to values, not [4]"),
        ("", "c.yaml:1: file content must be a mapping of keys to values, not None"),
        (b"\xff\xfe\xfa", "file must be text in UTF-8"),
        ("[" * 3000, "c.yaml:1: nesting must be at most 100 deep, not 101"),
    ],
)
def test_a_wrong_file_is_one_error_with_file_and_line(load, text, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        load(text)
    assert "\n" not in str(caught.value)


def test_of_several_wrong_things_the_first_in_the_file_is_named(load):
    with pytest.raises(InputError, match=r"c\.yaml:1: mode must be text, not 7"):
        load("mode: 7\nrows: 4.5\nrowz: 1\n")
    with pytest.raises(InputError, match=r"c\.yaml:1: key must be one of"):
        load("rowz: 1\nrows: 4.5\n")


def test_a_missing_file_or_a_directory_is_named(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(InputError, match=rf"file must be a readable file \(.+\), not '{path}'"):
            load_config(ToyEngine(), path, small_board())


def test_a_configuration_survives_the_way_through_plain_values(tmp_path, load):
    shape = Shape(rows=3, sizes=(7,))
    assert config_dict(shape) == {"rows": 3, "mode": "dense", "scale": 1.0, "sizes": [7]}
    assert load(str(config_dict(shape))) == shape


def test_the_hash_stands_for_engine_configuration_and_board():
    board = small_board()
    digits = config_hash("toy", Shape(), board)
    assert re.fullmatch("[0-9a-f]{12}", digits)
    assert digits == config_hash("toy", Shape(), small_board())
    others = {
        config_hash("boy", Shape(), board),
        config_hash("toy", Shape(rows=5), board),
        config_hash("toy", Shape(), dataclasses.replace(board, clock_mhz=101.0)),
    }
    assert len(others | {digits}) == 4


def test_an_engine_larger_than_the_board_is_refused_by_the_first_resource_it_lacks():
    board = small_board()
    check_fits(ToyEngine(lut=board.user.lut), Shape(), board)
    with pytest.raises(
        InputError,
        match=f"LUT of toy must be at most {board.user.lut}, what small has for kernels,"
        f" not {board.user.lut + 1}",
    ):
        check_fits(ToyEngine(lut=board.user.lut + 1), Shape(), board)


def test_a_port_on_a_channel_the_board_has_not_is_refused():
    board = small_board()
    with pytest.raises(
        InputError, match="channel of gmem1 must be from 0 to 3, the main channels of small, not 4"
    ):
        check_fits(ToyEngine(channel=4), Shape(), board)


def test_the_schema_tells_editors_keys_types_and_meanings():
    schema = config_schema(ToyEngine())
    assert schema["additionalProperties"] is False
    assert "required" not in schema
    rows = schema["properties"]["rows"]
    assert rows["type"] == "integer"
    assert rows["description"] == "Rows: 1 to 64, or fewer."
    assert list(schema["properties"]) == KEYS.split(", ")
    reader = jsonschema.Draft202012Validator(schema)
    assert reader.is_valid({"rows": 4, "sizes": [1]})
    for wrong in ({"rowz": 4}, {"rows": "4"}, {"sizes": 3}):
        assert not reader.is_valid(wrong)


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_every_field_of_every_engine_has_its_own_description(engine):
    fields = config_schema(find_engine(engine))["properties"]
    descriptions = [field.get("description", "") for field in fields.values()]
    assert all(re.match(r"[^`]|``\"", text) for text in descriptions), fields
    assert len(set(descriptions)) == len(fields)
