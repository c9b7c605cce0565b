import json

import pytest

from hw.errors import InputError
from sim.plans import ablate
from sim.plans.ablate import NOTHING, Ablated, ablation_table, run_ablate


def row(without, avoidable, bound, cpu):
    return Ablated(
        network="n", budget="M_R", without=without, avoidable_bytes=avoidable,
        bound_avoidable_bytes=bound, optimal=avoidable == bound, predicted_cycles=100, cpu_seconds=cpu,
    )  # fmt: skip


def test_the_table_says_what_is_lost():
    table = ablation_table([row(NOTHING, 200, 200, 4.0), row("annealing", 250, 200, 1.0)])
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    assert columns[0] == [NOTHING, "annealing"]
    assert columns[1] == ["200", "250"]
    assert columns[2] == ["+0.00 %", "+25.00 %"]
    assert columns[3] == ["1", "0"]
    assert columns[7] == ["+0.00 %", "-75.00 %"]


def test_rows_are_kept_and_taken_over(tmp_path, monkeypatch):
    asked = {"whole": True, "effort": 1}
    run_ablate(["minilm_layer"], "M_R", ["annealing", "exact_search"], tmp_path, **asked)
    kept = json.loads((tmp_path / "ablate.json").read_text())
    rows = kept["rows"].values()
    assert [each["without"] for each in rows] == [NOTHING, "annealing", "exact_search"]
    assert [each["optimal"] for each in rows][:2] == [True, True]
    monkeypatch.setattr(ablate, "_measure", lambda *asked: pytest.fail("a row was made again"))
    run_ablate(["minilm_layer"], "M_R", ["exact_search"], tmp_path, **asked)
    assert json.loads((tmp_path / "ablate.json").read_text()) == kept


def test_an_unknown_technique_is_refused(tmp_path):
    with pytest.raises(InputError, match="--without must be one of least_peak_annealing, "):
        run_ablate(["minilm_layer"], "M_R", ["magic"], tmp_path, whole=True, effort=1)
