import pytest

from hw.errors import InputError
from hw.scheduler.planner.address.blocks import Block
from hw.scheduler.planner.minimalloc import main, read_blocks
from tests.support.planner.packing_blocks import CAPACITY, INSTANCES


def test_a_file_of_blocks_is_read(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("id,lower,upper,size\n0,3,9,4\n1,5,6,7\n")
    assert read_blocks(path) == (Block(first=3, last=8, size=4), Block(first=5, last=5, size=7))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,lower,upper\n0,1,2\n", "line 2 of bad.csv must be lines of id,lower,upper,size"),
        ("id,lower,upper,size\n0,1,2,3\n1,2,3,x\n", "line 3 of bad.csv must be"),
        ("id,lower,upper,size\n0,1,2\n", "line 2 of bad.csv must be"),
        ("id,lower,upper,size\n0,2,2,3\n", "steps of a block must be rising"),
        ("id,lower,upper,size\n0,1,2,-3\n", "size of a block must be at least 1"),
        (b"\xff\xfe\x00", "file of blocks must be a readable file"),
    ],
)
def test_wrong_files(text, message, tmp_path, capsys):
    path = tmp_path / "bad.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message):
        read_blocks(path)
    assert main([str(path), "--capacity", "9"]) == 2
    assert message[:20] in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="file of blocks must be a readable file"):
        read_blocks(tmp_path / "none.csv")


def test_the_command_prints_what_was_placed(capsys):
    assert main([str(INSTANCES / "B.csv"), str(INSTANCES / "C.csv"), "--capacity", str(CAPACITY)]) == 0
    rows = [line.split()[:5] for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[:3] for row in rows] == [["B", "170", "1048576"], ["C", "203", "1039360"]]
    assert rows[0][3:] == ["1048576", "placed"]
    assert 1039360 <= int(rows[1][3]) <= CAPACITY
    assert rows[1][4] == "placed"


def test_the_command_fails_when_nothing_fits(capsys):
    assert main([str(INSTANCES / "B.csv"), "--capacity", "1048575"]) == 1
    assert "infeasible" in capsys.readouterr().out
