"""Rows of a comparison: made once, kept at once, found again; their tables."""

import json

import pytest

from sim.compare.rows import RowTask, make_rows, read_rows, write_document
from sim.compare.table import Column, cells, table, titles
from sim.host.console import console
from sim.host.files import csv_text

FORM = "test/1"


class Suite:
    """Numbers that take long to make; stops as if interrupted before one of them."""

    def __init__(self, path, stop_at=None):
        self.path, self.stop_at, self.made = path, stop_at, []
        self.known = read_rows(path, FORM, lambda document: {str(row): row for row in document["rows"]})

    def task(self, number):
        def make(progress):
            progress("thinking")
            if number == self.stop_at:
                raise KeyboardInterrupt
            self.made.append(number)
            return number

        return RowTask(key=str(number), title=f"number {number}", make=make)

    def run(self, numbers):
        return make_rows("Counting", map(self.task, numbers), self.known, self.keep)

    def keep(self):
        write_document(self.path, FORM, {"rows": list(self.known.values())})


def test_an_interrupted_suite_goes_on(tmp_path):
    path = tmp_path / "rows.json"
    with pytest.raises(KeyboardInterrupt):
        Suite(path, stop_at=3).run([1, 2, 3, 4])
    assert json.loads(path.read_text()) == {"format": FORM, "rows": [1, 2]}
    second = Suite(path)
    assert second.run([4, 3, 2]) == [4, 3, 2]
    assert second.made == [4, 3]
    assert json.loads(path.read_text())["rows"] == [1, 2, 4, 3]
    third = Suite(path)
    assert third.run([1]) == [1]
    assert third.made == []


@pytest.mark.parametrize(
    "text", [None, "", "[]", "{", '{"format": "other", "rows": [1]}', '{"format": "test/1"}']
)
def test_other_files_have_no_rows(tmp_path, text):
    path = tmp_path / "rows.json"
    if text is not None:
        path.write_text(text)
    assert Suite(path).known == {}


def test_tables_are_said_once():
    columns = (Column("n", str), Column("what", lambda n: "[b]even" if n % 2 == 0 else "odd", text=True))
    assert titles(columns) == ["n", "what"]
    assert cells(columns, 2) == ["2", "[b]even"]
    out = console()
    with out.capture() as capture:
        out.print(table("Numbers", columns, [2, 13]))
    assert [line.split() for line in capture.get().splitlines() if line.strip(" ╶─╴")] == [
        ["Numbers"], ["n", "what"], ["2", "[b]even"], ["13", "odd"],
    ]  # fmt: skip
    assert csv_text([{"a": 1, "b": "x,y"}, {"a": 2, "b": "z"}]) == 'a,b\n1,"x,y"\n2,z\n'
