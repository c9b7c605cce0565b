"""The first example of docs/oram-client.md runs as it stands, on a card that is the golden map."""

import json
import re
import sys
from pathlib import Path

from hw.config import config_dict
from hw.oram.config import OramConfig
from tests.support.processes import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_example_runs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "fakes"))
    monkeypatch.delitem(sys.modules, "pyxrt", raising=False)
    monkeypatch.setenv("FAKE_CONFIG", json.dumps(config_dict(OramConfig(value_bytes=16))))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("FAKE_ANSWERS", "12")
    monkeypatch.chdir(tmp_path)
    first, *others = BLOCK.findall((ROOT / "docs" / "oram-client.md").read_text())
    names = {}
    exec(first, names)
    assert names["before"] == (2).to_bytes(16, "little")
    assert names["values"] == [b"sixteen bytes of", (3).to_bytes(16, "little"), None]
    names["rings"]._call.wait(10_000)
    assert names["rings"].ended()  # all 12 commands were answered
    for other in others:
        compile(other, "oram-client.md", "exec")
    sys.modules.pop("pyxrt", None)
