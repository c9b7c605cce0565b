"""The cache of compiled functions: one for each state of the sources, the last one only."""

from hw.scheduler.compiled import _cache


def test_each_state_of_the_sources_has_its_own(tmp_path):
    source = tmp_path / "planner" / "kernel.py"
    source.parent.mkdir()
    source.write_text("LIMIT = 1\n")
    first = _cache(tmp_path)
    first.mkdir(parents=True)
    assert _cache(tmp_path) == first
    assert first.exists()
    source.write_text("LIMIT = 2\n")
    changed = _cache(tmp_path)
    assert changed != first
    assert not first.exists()
    source.rename(source.with_name("moved.py"))
    assert _cache(tmp_path) not in (first, changed)
