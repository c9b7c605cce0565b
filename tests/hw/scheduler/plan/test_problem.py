import pytest

from hw.errors import InputError
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind
from hw.scheduler.plan.options import PlanOptions
from hw.scheduler.plan.problem import DEFAULT_WINDOW_BYTES, Problem


@pytest.fixture
def graph():
    """A convolution, and a product that needs all of one operand."""
    return Graph(
        name="g",
        tensors=(
            Tensor(name="x", size_bytes=16 * 100 * 64, shape=(16, 100, 64), kind=TensorKind.INPUT),
            Tensor(name="y", size_bytes=16 * 50 * 64, shape=(16, 50, 64)),
            Tensor(name="w", size_bytes=10_001, kind=TensorKind.CACHE),
            Tensor(name="z", size_bytes=33, kind=TensorKind.OUTPUT),
        ),
        operators=(
            Operator(
                name="f", kind="conv", inputs=("x",), outputs=("y",),
                accesses={"x": Access(axis=1, output_axis=1, kernel=3, stride=2, pad=1)},
            ),
            Operator(name="g", kind="matmul", inputs=("y", "w"), outputs=("z",), fifo_bytes=65),
        ),
    )  # fmt: skip


def test_sizes_are_whole_words(graph):
    problem = Problem(graph=graph, word_bytes=32)
    assert problem.size == (3200, 1600, 313, 2)
    assert problem.fifo == (0, 3)
    assert problem.working_set == (4800, 1600 + 313 + 2 + 3)
    assert problem.compulsory == 3200 + 313 + 2


def test_who_writes_and_reads(graph):
    problem = Problem(graph=graph)
    assert problem.producer == (-1, 0, -1, 1)
    assert problem.consumers == ((0,), (1,), (1,), ())
    assert problem.predecessors == (0, 1)
    assert problem.written == (False, False, False, True)


def test_windows_hold_the_rows_an_output_row_needs_and_those_fetched_meanwhile(graph):
    problem = Problem(graph=graph)
    row_words = 16 * 64 // 32
    assert problem.window(0, 0) == (3 + 2) * row_words
    assert problem.window(0, 1) == 2 * row_words
    # Of unknown shape, or needed whole: pieces of the default size, or all of what is smaller.
    assert problem.window(1, 2) == DEFAULT_WINDOW_BYTES // 32
    assert problem.window(1, 3) == 2


def test_what_is_needed_whole_streams_alone(graph):
    problem = Problem(graph=graph)
    assert not problem.streams_alone(0, 0)
    assert problem.streams_alone(1, 1)
    assert not problem.streams_alone(1, 2)


def test_words_of_no_power_of_two(graph):
    with pytest.raises(InputError, match="word_bytes must be a power of two, not 24"):
        Problem(graph=graph, word_bytes=24)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scratchpad_bytes": 0}, "scratchpad_bytes must be from 1 to 4294967295, not 0"),
        ({"scratchpad_bytes": 2**32}, "not 4294967296"),
        ({"word_bytes": 48}, "word_bytes must be a power of two from 4 to 128, not 48"),
        ({"objective": ()}, "bytes before peak and transfers, not ''"),
        ({"objective": ("peak", "bytes")}, "not 'peak,bytes'"),
        ({"objective": ("bytes", "peak", "peak")}, "peak and transfers, not 'bytes,peak,peak'"),
        ({"objective": ("bytes", "watts")}, "must be made of bytes, peak, transfers, latency, not 'watts'"),
        ({"macs_per_cycle": 0}, "macs_per_cycle must be at least 1, not 0"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"effort": 0}, "effort must be at least 1, not 0"),
        ({"time_limit_s": 0.0}, "time_limit_s must be above 0, not 0.0"),
        ({"time_limit_s": float("nan")}, "time_limit_s must be above 0, not nan"),
    ],
)  # fmt: skip
def test_wrong_options(fields, message):
    with pytest.raises(InputError) as caught:
        PlanOptions(**{"scratchpad_bytes": 1024, **fields})
    assert message in str(caught.value)
