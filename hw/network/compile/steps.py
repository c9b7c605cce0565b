"""Steps: operators that run as one, and the form of the value that each makes.

* A sum joins the convolution that makes one of its operands, and a table the convolution or sum it reads.
* A concat joins the operators that make its operands; each writes its channels.  An operand with other
  readers is copied.
* The products that make an attention's operands from one value are one: `hw.network.compile.operands`.
* Rows that a gather takes from a table come with a transfer: they are no step.
* A value whose channels lie apart is packed where an operator needs them in order.
* A value of one channel is copied to all channels where an operator needs it for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError
from hw.network.compile.form import GRANULE, Form, fold_of
from hw.network.compile.operands import Operands
from hw.network.graph.network import (
    Attention,
    Concat,
    Convolution,
    Gather,
    LayerNorm,
    Network,
    Operator,
    Product,
    Softmax,
    Sum,
    Table,
    TokenMean,
    Value,
)
from hw.network.graph.sums import SUM_FRACTION_BITS, sum_shift


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """One operator of a step."""

    operator: Operator
    #: A sum that takes the convolution's results with ``residual``.
    sum: Sum | None = None
    residual: str = ""
    table: Table | None = None  #: A function of the convolution's results, or of the sum.
    #: First granule of the results in each pixel of the step's output.
    first_granule: int = 0
    joined: str = ""  #: The value that holds an attention's operands, as `Operands` make them.

    @property
    def output(self) -> str:
        """The value it makes."""
        return (self.table or self.sum or self.operator).output

    @property
    def inputs(self) -> tuple[str, ...]:
        """The values it reads."""
        if self.joined:
            return (self.joined,)
        return (*self.operator.inputs, self.residual) if self.sum is not None else self.operator.inputs


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """Operators that run one after the other and make one value."""

    name: str
    works: tuple[Work, ...]
    output: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """The values it reads, each once."""
        return tuple(dict.fromkeys(name for work in self.works for name in work.inputs))


@dataclass(frozen=True, kw_only=True)
class Steps:
    """All steps of a network, its values, and the form of each value that a step reads or makes."""

    network: Network
    steps: tuple[Step, ...]
    values: dict[str, Value]
    forms: dict[str, Form]

    @property
    def gathers(self) -> dict[str, Gather]:
        """The gathers, by the value of the rows."""
        found = self.network.operators
        return {operator.output: operator for operator in found if isinstance(operator, Gather)}


def steps_of(network: Network) -> Steps:
    """Join the operators of a network to steps, in an order in which each reads values that exist.

    Raises `InputError` for an output of the network that no operator makes.
    """
    made = {operator.output for operator in network.operators}
    for output in network.outputs:
        if output not in made:
            names = [each.name for each in network.model_outputs if each.value == output]
            legal = "made by an operator, and this is an input"
            raise InputError("output of the network", ", ".join(names) or output, legal)
    return _Joiner(network).steps()


class _Joiner:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._values = dict(network.values)
        self._readers = Counter(name for operator in network.operators for name in operator.inputs)
        self._readers.update(network.outputs)
        self._made_by = {operator.output: operator for operator in network.operators}
        self._order = {operator.output: number for number, operator in enumerate(network.operators)}
        self._forms: dict[str, Form] = {}
        self._steps: list[Step] = []
        #: Works that wait for the step of a concat, by the value they make.
        self._held: dict[str, tuple[Work, ...]] = {}
        #: The sum that each convolution joins, by the convolution's output.
        self._sums: dict[str, Sum] = {}
        #: The table that each result of a convolution, or of its sum, passes.
        self._tables: dict[str, Table] = {}
        into = {name: each for each in network.operators for name in each.inputs if self._readers[name] == 1}
        #: Joined products by the operands of attention: by the last one, and None by others.
        self._operands: dict[str, Operands | None] = {}
        #: The value that holds all operands of an attention, by the attention's result.
        self._joined: dict[str, str] = {}
        #: Outputs that a concat takes over.
        self._parts = {
            name for name, each in into.items() if isinstance(each, Concat) and name in self._made_by
        }

    def steps(self) -> Steps:
        """Make all steps."""
        network = self._network
        for name in (*network.inputs, *network.constants):
            self._forms[name] = self._input_form(name)
        for operator in network.operators:
            if isinstance(operator, Attention):
                self._join(operator)
        for operator in network.operators:
            if isinstance(operator, Sum):
                self._choose(operator)
        for operator in network.operators:
            if isinstance(operator, Table):
                self._choose_table(operator)
        for operator in network.operators:
            if isinstance(operator, Concat):
                self._concat(operator)
            elif isinstance(operator, Gather):
                value = self._values[operator.output]
                self._forms[value.name] = Form.plain(value.shape, bits=value.bits)
            elif operator.output in self._operands:
                joined = self._operands[operator.output]
                if joined is not None:
                    self._add(joined.output, (Work(operator=joined),))
            elif not {operator.output} & (self._sums.keys() | self._tables.keys()):
                work = self._work(operator)
                self._forms[work.output] = self._form(work)
                if work.output in self._parts:
                    self._held[work.output] = (work,)
                else:
                    self._add(work.output, (work,))
        return Steps(network=network, steps=tuple(self._steps), values=self._values, forms=self._forms)

    def _add(self, output: str, works: tuple[Work, ...]) -> None:
        self._steps.append(Step(name=works[-1].operator.name, works=works, output=output))

    def _input_form(self, name: str) -> Form:
        value = self._values[name]
        readers = [each for each in self._network.operators if name in each.inputs]
        if len(readers) == 1 and isinstance(reader := readers[0], Convolution) and reader.groups == 1:
            after = self._values[reader.output].shape
            if name in self._network.inputs and (fold := fold_of(value.shape, reader.window, after)):
                return Form(
                    height=value.shape[0],
                    width=value.shape[1],
                    granules=1,
                    positions=(),
                    zero=value.zero,
                    fold=fold,
                )
        return Form.plain(value.shape, value.zero, bits=min(value.bits, 16))

    def _join(self, operator: Attention) -> None:
        """Join the products of an attention's operands, if they read one value and nobody else reads them."""
        makers = [self._made_by.get(name) for name in operator.inputs]
        products = [each for each in makers if isinstance(each, Convolution) and each.groups == 1]
        same = {(each.inputs[0], each.weights.shape[3], each.low, each.high) for each in products}
        alone = all(self._readers[name] == 1 for name in operator.inputs)
        if len(products) < 3 or len({*operator.inputs}) < 3 or len(same) > 1 or not alone:
            return
        before, after = self._values[products[0].inputs[0]], [self._values[name] for name in operator.inputs]
        if after[0].shape[2] // operator.heads % GRANULE:
            return
        name = f"{operator.output}:operands"
        joined = Operands.of(products, after, before, heads=operator.heads, output=name)
        height, width, channels = after[0].shape
        self._values[name] = replace(after[0], name=name, shape=(height, width, 3 * channels))
        self._forms[name] = Form.plain(self._values[name].shape)
        # The last product stands for all.
        last = max(products, key=lambda each: self._order[each.output])
        self._operands |= {each.output: joined if each is last else None for each in products}
        self._joined[operator.output] = name

    def _choose(self, operator: Sum) -> None:
        """Let a sum join the later of the convolutions that make its operands."""
        shape = self._values[operator.output].shape
        if len({self._values[name].shape for name in operator.inputs} | {shape}) > 1:
            return
        found = [
            name
            for name in operator.inputs
            if isinstance(self._made_by.get(name), Convolution) and self._readers[name] == 1
        ]
        scales = [self._values[name].scale for name in operator.inputs]
        # The drain has factors of 26 bits, 24 of them a fraction; the vector unit shifts others.
        shift = sum_shift(scales[0], scales[1], self._values[operator.output].scale)
        if found and shift == SUM_FRACTION_BITS:
            self._sums[max(found, key=self._order.__getitem__)] = operator

    def _choose_table(self, operator: Table) -> None:
        """Let a table join the convolution, or the sum of one, that makes its operand."""
        name = operator.inputs[0]
        made = self._made_by.get(name)
        joins = isinstance(made, Convolution) or made in self._sums.values()
        if joins and name not in self._sums and self._readers[name] == 1:
            self._tables[name] = operator

    def _work(self, operator: Operator) -> Work:
        """Return the work of an operator; operands that it needs in order are packed before."""
        if isinstance(operator, Table) and self._tables.get(operator.inputs[0]) is operator:
            return replace(self._work(self._made_by[operator.inputs[0]]), table=operator)
        if isinstance(operator, Sum):
            for name in operator.inputs:
                if self._sums.get(name) is operator:
                    residual = next(each for each in operator.inputs if each != name)
                    convolution = self._made_by[name]
                    return Work(operator=convolution, sum=operator, residual=self._in_order(residual))
        if isinstance(operator, (Sum, Product)):
            channels = self._values[operator.output].shape[2]
            names = [self._spread(name, channels) for name in operator.inputs]
            forms = [self._forms[name].positions for name in names]
            if forms[0] != forms[1]:
                names = list(map(self._in_order, names))
            operator = replace(operator, inputs=tuple(names))
        if isinstance(operator, Softmax):
            operator = replace(operator, inputs=(self._in_order(operator.inputs[0]),))
        if isinstance(operator, Attention):
            return Work(operator=operator, joined=self._joined.get(operator.output, ""))
        return Work(operator=operator)

    def _form(self, work: Work) -> Form:
        value = self._values[work.output]
        shape = value.shape
        if isinstance(work.operator, (Convolution, LayerNorm, Attention, TokenMean)):
            return Form.plain(shape, bits=value.bits)
        before = self._forms[work.operator.inputs[0]]
        return replace(before, height=shape[0], width=shape[1])

    def _in_order(self, name: str) -> str:
        """Return a value, or its copy with the channels in order: a convolution by the unit matrix."""
        if self._forms[name].is_plain:
            return name
        return self._copied(name, f"{name}:packed", np.eye(self._values[name].shape[2], dtype=np.int8))

    def _spread(self, name: str, channels: int) -> str:
        """Return a value, or the copy of its one channel to all: a convolution by ones."""
        if self._values[name].shape[2] == channels:
            return name
        return self._copied(name, f"{name}:{channels}", np.ones((1, channels), np.int8))

    def _copied(self, name: str, copy: str, matrix: NDArray[np.int8]) -> str:
        """Return the value ``copy``, whose channels are those of another by a matrix of zeros and ones."""
        if copy not in self._values:
            value, channels = self._values[name], matrix.shape[1]
            shape = (*value.shape[:2], channels)
            self._values[copy] = replace(value, name=copy, shape=shape)
            self._forms[copy] = Form.plain(shape)
            convolution = Convolution(
                name=copy,
                inputs=(name,),
                output=copy,
                weights=matrix[None, None],
                bias=np.zeros(channels, np.int32),
                weight_scales=np.ones(channels, np.float32),
            )
            self._add(copy, (Work(operator=convolution),))
        return copy

    def _concat(self, operator: Concat) -> None:
        """Make the step of a concat, or leave its parts to the concat that reads it."""
        works, positions, granules = [], [], 0
        for name in operator.inputs:
            form = self._forms[name]
            for work in self._part(name, operator):
                works.append(replace(work, first_granule=work.first_granule + granules))
            positions += [position + granules * GRANULE for position in form.positions]
            granules += form.granules
        height, width, _ = self._values[operator.output].shape
        self._forms[operator.output] = Form(
            height=height, width=width, granules=granules, positions=tuple(positions)
        )
        if operator.output in self._parts:
            self._held[operator.output] = tuple(works)
        else:
            self._add(operator.output, tuple(works))

    def _part(self, name: str, operator: Concat) -> Iterator[Work]:
        """Yield the works that write one operand of a concat."""
        if name in self._held:
            yield from self._held.pop(name)
        else:
            copy = Table(
                name=f"{operator.name}:{name}",
                inputs=(name,),
                output=operator.output,
                function="Copy",
                results=np.arange(-128, 128).astype(np.int8),
            )
            yield Work(operator=copy)
