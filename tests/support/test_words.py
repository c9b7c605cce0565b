"""The measure of prose: where sentences begin and end, and which text is none."""

import pytest

from tests.support.words import Sentence, prose_of


def sentences(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return [(sentence.line, sentence.text) for sentence in prose_of([path]).sentences]


MARKDOWN = """# No heading counts
One sentence is here, e.g. this one. `code` begins the second, with `a`, `b` and `c`.

* An item of a list
    goes on in a deeper line.
1. Another [item with a link](page.md).

A paragraph ends the list.

    code = no sentence at all

| a table | has none |
```
nor has a block
```
"""
PYTHON = '''"""
A module of few words.

Behaviour
---------
The gates wait: see ``a = b`` there.

>>> an_example(of_the_class)
and its output of words
"""

x = 1  # beside code stands one
y = 2  # and beside the next another
#: A comment of
#: two lines.
z = "no sentence in a string"  # noqa: E501


def f():
    """A drawing follows::

        a --> b and some more words
    """
'''


def test_markdown(tmp_path):
    assert sentences(tmp_path, "page.md", MARKDOWN) == [
        (2, "One sentence is here, eg this one."),
        (2, "Code begins the second, with Code."),
        (4, "An item of a list goes on in a deeper line."),
        (6, "Another item with a link."),
        (8, "A paragraph ends the list."),
    ]


def test_python(tmp_path):
    assert sentences(tmp_path, "module.py", PYTHON) == [
        (2, "A module of few words."),
        (6, "The gates wait: see Code there."),
        (20, "A drawing follows::"),
        (12, "beside code stands one"),
        (13, "and beside the next another"),
        (14, "A comment of two lines."),
    ]


def test_measures(tmp_path):
    text = f"It gives what it has. {'Long ' + 'word ' * 24 + 'end'}. A short one."
    (tmp_path / "page.md").write_text(text)
    prose = prose_of([tmp_path])
    assert [sentence.words for sentence in prose.sentences] == [5, 26, 3]
    assert prose.words_a_sentence == pytest.approx(34 / 3)
    assert prose.long_share == pytest.approx(1 / 3)
    assert prose.vague_per_thousand == pytest.approx(1000 * 2 / 34)
    assert [sentence.words for sentence in prose.worst(5)] == [26, 5]
    assert isinstance(prose.worst(1)[0], Sentence)
