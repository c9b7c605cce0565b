"""The database of a sweep: what is kept, who claims what, what is refused."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from hw.errors import InputError
from sim.sweep.points import DesignPoint, Evaluation
from sim.sweep.store import Store

POINT = DesignPoint(board="u55c", parameters={"attention.rows": 4}, configs={"attention": {"rows": 4}})


def outcome(cycles):
    return Evaluation(fidelity="prediction", engine="attention", workload="a", figures={"cycles": cycles})


def test_what_is_put_in_comes_out(tmp_path):
    with Store(tmp_path / "a.db", make=True) as store:
        store.begin({"seed": 0}, join=False)
        store.add_points([(0, POINT)])
        store.add_parts([(0, "k"), (0, "unknown")])
        store.finish({"k": outcome(5)})
        store.finish({"k": outcome(6)})  # the first stays
    with Store(tmp_path / "a.db") as store:
        assert list(store.points()) == [(0, POINT, (outcome(5),))]
        assert store.spec == {"seed": 0}


def test_a_claim_is_one_process_only(tmp_path):
    with Store(tmp_path / "a.db", make=True) as one, Store(tmp_path / "a.db", make=True) as other:
        other.owner = f"{one.owner.rsplit(':', 2)[0]}:{os.getppid()}:" + one.owner.rpartition(":")[2]
        assert one.claim(["k", "l"]) == ["k", "l"]
        assert other.claim(["k", "m"]) == ["m"]
        one.finish({"k": outcome(1)})
        one.end()
        assert other.claim(["k", "l"]) == ["l"]


def test_a_dead_process_claims_nothing(tmp_path):
    code = "import sys; from pathlib import Path; from sim.sweep.store import Store\n"
    code += "print(Store(Path(sys.argv[1]), make=True).claim(['k']))"
    path = tmp_path / "a.db"
    said = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert said.stdout == "['k']\n"
    with Store(path) as store:
        assert store.claim(["k"]) == ["k"]


def test_a_process_of_another_machine_lapses(tmp_path, monkeypatch):
    with Store(tmp_path / "a.db", make=True) as one, Store(tmp_path / "a.db") as other:
        one.owner = "elsewhere:1:2"
        one.claim(["k"])
        assert other.claim(["k"]) == []
        monkeypatch.setattr("sim.sweep.store.LAPSE_SECONDS", -1.0)
        assert other.claim(["k"]) == ["k"]


def test_another_sweep_keeps_outcomes_only(tmp_path):
    with Store(tmp_path / "a.db", make=True) as store:
        store.begin({"seed": 0}, join=False)
        store.add_points([(0, POINT)])
        store.finish({"k": outcome(5)})
        store.begin({"seed": 1}, join=False)
        assert list(store.points()) == []
        assert store.outcomes(["k"]) == {"k": outcome(5)}
        store.add_points([(0, POINT)])
        store.begin({"seed": 1}, join=False)
        assert len(list(store.points())) == 1
        store.begin({"seed": 1}, join=False, code="of another version")
        assert list(store.points()) == []


def test_a_database_at_work_is_joined_or_left_alone(tmp_path):
    with Store(tmp_path / "a.db", make=True) as one, Store(tmp_path / "a.db") as other:
        one.owner = "elsewhere:1:2"
        one.begin({"seed": 0}, join=False)
        with pytest.raises(InputError, match="process 1 on elsewhere works on it, or joined with --join"):
            other.begin({"seed": 0}, join=False)
        with pytest.raises(InputError, match="that of the same sweep"):
            other.begin({"seed": 1}, join=True)
        other.begin({"seed": 0}, join=True)
        one.end()
        other.end()


def test_a_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(InputError, match="a file that exists"):
        Store(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("no database, but long enough to be one" * 50)
    with pytest.raises(InputError, match="a sweep's, and writable"):
        Store(tmp_path / "text.db", make=True)
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE things (name TEXT)")
    (tmp_path / "empty.db").touch()
    for name, make in (("other", True), ("other", False), ("empty", False)):
        with pytest.raises(InputError, match="a sweep's: it has no table of that name"):
            Store(tmp_path / f"{name}.db", make=make)
    with Store(tmp_path / "old.db", make=True) as store:
        store._connection.execute("UPDATE sweep SET value = 'loomwork-sweep-0'")
    with pytest.raises(InputError, match="another version of Loomwork"):
        Store(tmp_path / "old.db")
    with pytest.raises(InputError, match="writable"):
        Store(tmp_path / "missing" / "a.db", make=True)


def test_a_damaged_document_is_one_error(tmp_path):
    path = tmp_path / "s.db"
    with Store(path, make=True) as store:
        store.begin({"seed": 1}, join=False)
        store.add_points([(0, POINT)])
        store.end()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE points SET document = '{'")
    with Store(path) as store, pytest.raises(InputError, match="a point or outcome in it is damaged"):
        list(store.points())
