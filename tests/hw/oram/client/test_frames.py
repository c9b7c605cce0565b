"""Files of frames: every cut leaves whole frames; damage of what was on the disk is refused."""

import pytest

from hw.oram.client.errors import JournalError
from hw.oram.client.frames import FrameFile

BODIES = [b"first", b"", b"LWF1 is a mark", bytes(30)]


@pytest.fixture
def path(tmp_path):
    file = FrameFile.create(tmp_path / "frames", BODIES[:1])
    for body in BODIES[1:]:
        file.append([body], sync=True)
    file.close()
    return tmp_path / "frames"


def bodies(path):
    file, found = FrameFile.open(path)
    file.close()
    return found


def test_round_trip(path):
    assert bodies(path) == BODIES
    assert path.stat().st_mode & 0o777 == 0o600


def test_every_cut_leaves_whole_frames_and_room_for_others(path):
    content = path.read_bytes()
    ends = [20 * (n + 1) + sum(map(len, BODIES[: n + 1])) for n in range(len(BODIES))]
    assert ends[-1] == len(content)
    for cut in range(0, len(content), 3):
        path.write_bytes(content[:cut] + b"\xff" * (cut % 3))
        whole = sum(end <= cut for end in ends)
        file, found = FrameFile.open(path)
        assert found == BODIES[:whole]
        file.append([b"other"], sync=False)
        file.close()
        assert bodies(path) == [*BODIES[:whole], b"other"]


def test_damage_of_what_was_on_the_disk_is_refused(path):
    content = path.read_bytes()
    last = len(content) - len(BODIES[-1]) - 20
    for at in range(last):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        with pytest.raises(JournalError, match="damaged at byte"):
            FrameFile.open(path)


def test_a_draft_replaces_the_file_at_once(path):
    path.with_name("frames.new").write_bytes(b"of a killed process, longer than the next")
    FrameFile.create(path, [b"next"]).close()
    assert bodies(path) == [b"next"]
    assert not path.with_name("frames.new").exists()
