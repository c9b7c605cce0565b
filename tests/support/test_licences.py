"""The page of licences has every pinned package, with the licence that it states."""

from tests.support.licences import ELSEWHERE, PAGE, licence_of, page, pinned, rows


def test_the_page_is_that_of_the_pinned_packages():
    text = PAGE.read_text()
    assert page(text) == text, "python -m tests.support.licences"
    assert list(rows(text)) == pinned()
    assert "not stated" not in text


def test_a_package_that_is_not_installed_keeps_its_row():
    assert licence_of("no-package-of-this-name") is None
    name = next(name for name in pinned() if licence_of(name) is None)
    assert f"| {name} | {ELSEWHERE} |" in page("")
    assert page(f"| {name} | MIT |\n").count(f"| {name} | MIT |") == 1
