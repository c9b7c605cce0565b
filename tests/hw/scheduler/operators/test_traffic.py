"""The traffic engine: its function, its pace, and rings that hold it back."""

import random

import pytest

from hw.scheduler.program.program import Via
from tests.hw.scheduler.core.benches import OneOperator, config_for
from tests.support.gateware.streams import get, put, simulate
from tests.support.program.random_programs import operator_words

WORDS = 128


def run(inputs, outputs, *, operator=5, compute_cycles=0, word_bytes=8, seed=0):
    """Run one operator on whole operands laid out one after the other; return outputs and cycles to done."""
    rng = random.Random(seed)
    config = config_for(words=WORDS, word_bytes=word_bytes)
    dut = OneOperator(config)
    content = [rng.getrandbits(8 * word_bytes) for _ in range(sum(inputs))]
    found = {}

    async def bench(ctx):
        await put(
            ctx,
            dut.scratchpad.write[0],
            [{"address": address, "data": word} for address, word in enumerate(content)],
        )
        command = {
            "operator": operator,
            "inputs": len(inputs),
            "outputs": len(outputs),
            "input_words": sum(inputs),
            "output_words": sum(outputs),
            "compute_cycles": compute_cycles,
        }
        # One cycle for the transfer of the command, and the count is of those after it, done's included.
        await put(ctx, dut.operator.command, [command])
        cycles, done = 0, False
        while not done:
            _, _, done = await ctx.tick().sample(dut.port.done)
            cycles += 1
        found["cycles"] = cycles
        found["words"] = []
        for address in range(sum(inputs), sum(inputs) + sum(outputs)):
            await put(ctx, dut.scratchpad.read[-1].request, [address])
            found["words"] += await get(ctx, dut.scratchpad.read[-1].response, 1)

    def operands(stream, sizes, at):
        async def feed(ctx):
            first = at
            for words in sizes:
                operand = {"address": first, "words": words, "ring": 0, "tag": Via.WHOLE}
                await put(ctx, stream, [operand])
                first += words

        return feed

    simulate(
        dut,
        bench,
        operands(dut.operator.inputs, inputs, 0),
        operands(dut.operator.outputs, outputs, sum(inputs)),
    )
    expected = operator_words(operator, content, list(outputs), word_bytes)
    assert found["words"] == [word for words in expected for word in words]
    return found["cycles"]


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ((), (5,)),
        ((), (1, 1, 3)),
        ((1,), (1,)),
        ((40,), (40,)),
        ((40,), (7,)),
        ((7,), (40,)),
        ((1,), (30,)),
        ((30,), (1,)),
        ((3, 1, 17), (2, 19)),
        ((1, 1, 1, 1), (1, 1, 1)),
        ((13, 13), (25,)),
    ],
)
def test_function_and_cycles(inputs, outputs):
    pipeline = 12 if inputs else 5
    assert run(inputs, outputs) == max(sum(inputs), sum(outputs)) + pipeline


@pytest.mark.parametrize("word_bytes", [4, 8, 16, 64])
def test_every_width(word_bytes):
    run((5, 6), (4, 3), word_bytes=word_bytes, operator=0xFFFF)


@pytest.mark.parametrize("compute_cycles", [0, 1, 19, 20, 21, 60])
def test_least_cycles(compute_cycles):
    assert run((8,), (8,), compute_cycles=compute_cycles) == max(20, compute_cycles)


def test_every_input_bit_shows_in_the_last_word():
    word_bytes, outputs, rng = 8, [2, 3], random.Random(0)
    content = [rng.getrandbits(64) for _ in range(6)]
    last = operator_words(9, content, outputs, word_bytes)[-1][-1]
    for index in range(len(content)):
        for bit in range(64):
            changed = list(content)
            changed[index] ^= 1 << bit
            assert operator_words(9, changed, outputs, word_bytes)[-1][-1] != last


def test_order_of_words_shows():
    rng = random.Random(1)
    content = [rng.getrandbits(64) for _ in range(300)]
    last = operator_words(9, content, [3], 8)[-1][-1]
    for distance in (1, 2, 32, 64, 256):
        changed = list(content)
        changed[0], changed[distance] = changed[distance], changed[0]
        assert operator_words(9, changed, [3], 8)[-1][-1] != last
