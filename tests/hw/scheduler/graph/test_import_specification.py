"""The ONNX package's cases of each operator: shapes are those of its results."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from hw.errors import InputError
from hw.scheduler.graph.importers.onnx_model import import_onnx


def with_constants(model, values):
    """The model with small whole numbers behind its first input as parameters: axes, sizes, indices."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value, given in list(zip(made.graph.input, values, strict=False))[1:]:
        if isinstance(given, np.ndarray) and given.dtype.kind in "iub" and given.size < 50:
            made.graph.initializer.append(numpy_helper.from_array(given, value.name))
    return made.SerializeToString()


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
def test_every_case_of_every_operator():
    from onnx.backend.test.case.node import collect_testcases

    taken, wrong = 0, []
    for case in collect_testcases(None):
        if case.model is None or not case.data_sets:
            continue
        given, expected = case.data_sets[0]
        shapes = {
            value.name: result.shape
            for value, result in zip(case.model.graph.output, expected, strict=False)
            if isinstance(result, np.ndarray)
        }
        try:
            graph = import_onnx(with_constants(case.model, given))
        except InputError as error:
            named = ("supported ones", "more than a view", "must be known once", "must be a tensor")
            if not any(words in str(error) for words in named):
                wrong.append((case.name, str(error)))
            continue
        taken += 1
        found = {tensor.name: tensor.shape for tensor in graph.tensors if tensor.name in shapes}
        if any(shapes[name] != shape for name, shape in found.items()):
            wrong.append((case.name, found))
    assert not wrong
    assert taken > 1200
