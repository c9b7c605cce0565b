"""Drawings of pages: every line, arrow and word of the text is in the SVG, in colours of the page."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from docs.drawings import is_drawing, on_page_markdown, svg

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
SMALL = """
    keys ─► cutter ──words──► array ─► o
                                ▲  a label
              queries ──────────┘
"""


def found(text):
    root = ElementTree.fromstring(svg(text))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    lines, heads = (element.get("d") for element in root.iter(f"{SVG}path"))
    return root, texts, lines, heads


def test_a_small_one():
    root, texts, lines, heads = found(SMALL)
    assert texts == ["keys", "cutter", "words", "array", "o", "a label", "queries"]
    assert root.find(f"{SVG}title").text == "keys, cutter, array, o, queries"
    assert len(root.findall(f"{SVG}rect")) == 5
    assert heads.count("Z") == 4
    # Two halves of each character, but one of an arrowhead.
    assert lines.count("M") == 2 * SMALL.count("─") + 4 + 2


def test_drawings_of_pages():
    drawn = 0
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text()
        site = on_page_markdown(text)
        for block in re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            if not is_drawing(block):
                assert block in site
                continue
            drawn += 1
            root, texts, _, heads = found(block)
            assert set(re.findall(r"\w+", block)) == set(re.findall(r"\w+", " ".join(texts))), page
            assert heads.count("Z") == sum(block.count(head) for head in "►◄▲▼")
            for element in root.iter():
                assert {element.get("fill"), element.get("stroke")} <= {None, "none", "currentColor"}
        assert site.count("<svg") == len(re.findall(r"^```(?:text)?\n[^`]*►", text, re.MULTILINE))
    assert drawn >= 4
