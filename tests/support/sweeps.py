"""Databases of sweeps that never were, filled by the analytic models and with reports made up from them."""

import dataclasses
import itertools

from pydantic import TypeAdapter

from hw.attention.driver.workload import AttentionWorkload
from hw.board import load_board
from hw.config import config_dict
from hw.energy import energy
from hw.energy.launch import predicted_activity
from hw.registry import find_engine
from sim.report.report import ADAPTER
from sim.sweep.figures import predicted_figures
from sim.sweep.points import DesignPoint, Evaluation
from sim.sweep.spec import spec_dict, spec_of
from sim.sweep.store import Store
from tests.support.pages.reports import synthetic

WORKLOADS = {
    "minilm": {"heads": 12, "queries": [128], "keys": [128], "query_size": 32, "value_size": 32},
    "decode": {
        "heads": 32,
        "kv_heads": 8,
        "queries": [1],
        "keys": [2048],
        "query_size": 32,
        "value_size": 32,
    },
}
PARAMETERS = {"rows": [8, 16, 32], "cached_keys": [0, 8192], "streams": [1, 2], "probability_bits": [8, 20]}
SPEC = {
    "boards": ["u55c"],
    "engines": {
        "attention": {
            "parameters": PARAMETERS,
            "config": {"lanes": 32, "folds": 1, "ports_per_stream": 1},
            "workloads": {name: {"shape": shape} for name, shape in WORKLOADS.items()},
        }
    },
    "objectives": {"minilm.cycles": "min", "decode.cycles": "min", "dsp": "min"},
    "fidelities": {"control": {}},
}


def attention_sweep(path, *, simulated=(3, 5), parameters=PARAMETERS, constraints=(), off=1.004):
    """Write the database of a grid of attention engines.

    Points ``simulated`` take ``off`` times the predicted cycles; point 1 cannot be built.
    """
    engine, board = find_engine("attention"), load_board("u55c")
    of_engine = SPEC["engines"]["attention"] | {"parameters": parameters}
    spec = SPEC | {"engines": {"attention": of_engine}, "constraints": list(constraints)}
    default = dataclasses.replace(engine.default_config(board), **SPEC["engines"]["attention"]["config"])
    workloads = TypeAdapter(AttentionWorkload)
    with Store(path, make=True) as store:
        store.begin(spec_dict(spec_of(spec)), join=False)
        for number, values in enumerate(itertools.product(*parameters.values())):
            chosen = dict(zip(parameters, values, strict=True))
            config = dataclasses.replace(default, **chosen)
            gates = engine.resources(config, board)
            outcomes = [
                Evaluation(
                    fidelity="prediction",
                    engine="attention",
                    figures={} if number == 1 else {name: float(count) for name, count in gates.items()},
                    failure="rows must be odd, not 8" if number == 1 else "",
                    document={"user": dict(board.user.items())},
                )
            ]
            for name, shape in WORKLOADS.items():
                prediction = engine.predict(workloads.validate_python(shape), config, board)
                activity = predicted_activity(engine, config, board, prediction)
                figures = predicted_figures(prediction, board.clock_mhz)
                figures |= {"microjoules": 1e-6 * energy(activity).total.value}
                outcomes.append(
                    Evaluation(fidelity="prediction", engine="attention", workload=name, figures=figures)
                )
                if number in simulated:
                    report = ADAPTER.dump_python(synthetic(), mode="json")
                    measured = figures | {"cycles": round(figures["cycles"] * off)}
                    outcomes.append(
                        Evaluation(
                            fidelity="control",
                            engine="attention",
                            workload=name,
                            figures=measured,
                            document=report,
                        )
                    )
            point = DesignPoint(
                board="u55c",
                parameters={f"attention.{name}": value for name, value in chosen.items()},
                configs={"attention": config_dict(config)},
            )
            store.add_points([(number, point)])
            keyed = {f"{number}-{place}": outcome for place, outcome in enumerate(outcomes)}
            store.add_parts((number, key) for key in keyed)
            store.finish(keyed)
        store.end()
