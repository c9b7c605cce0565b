"""Shapes of products of matrices."""

import re

from hw.scheduler.graph.importers.rules.call import Misfit, NodeCall, Shape, fits_into, joined


def matrix_product(call: NodeCall) -> list[Shape]:
    """MatMul: the last two dimensions are matrices, the others batches; a vector is a row, or a column."""
    left, right = call.shape(0), call.shape(1)
    for position, shape in enumerate((left, right)):
        if not shape:
            raise Misfit(f"shape of {call.label(position)}", shape, "of at least 1 dimension")
    rows = left if len(left) > 1 else (1, *left)
    columns = right if len(right) > 1 else (*right, 1)
    if rows[-1] != columns[-2]:
        legal = f"{rows[-1]}, the columns of {call.label(0)} {left}"
        raise Misfit(f"rows of {call.label(1)} {right}", columns[-2], legal)
    if (outside := joined(rows[:-2], columns[:-2])) is None:
        legal = f"ones that fit {rows[:-2]}, those of {call.label(0)}"
        raise Misfit(f"batches of {call.label(1)}", columns[:-2], legal)
    return [(*outside, *rows[-2:-1][: len(left) > 1], *columns[-1:][: len(right) > 1])]


def gemm(call: NodeCall) -> list[Shape]:
    """Gemm: two matrices, each optionally transposed, and a third that is broadcast into the result."""
    left, right = call.shape(0, 2), call.shape(1, 2)
    rows, inner = left[::-1] if call.number("transA", 0) else left
    other, columns = right[::-1] if call.number("transB", 0) else right
    if inner != other:
        legal = f"{inner}, as {call.label(0)} {left} has them"
        raise Misfit(f"inner dimension of {call.label(1)} {right}", other, legal)
    if call.opset < 7 and not call.number("broadcast", 0):
        call.expect(2, (rows, columns))
    fits_into(call, 2, (rows, columns))
    return [(rows, columns)]


def fused_product(call: NodeCall) -> list[Shape]:
    """onnxruntime's FusedMatMul: a product whose operands may be transposed."""
    for name in ("transBatchA", "transBatchB"):
        if call.number(name, 0):
            raise Misfit(name, 1, "0: transposed batches are not supported")
    shapes = []
    for position, name in enumerate(("transA", "transB")):
        shape = call.shape(position)
        turned = call.number(name, 0) and len(shape) > 1
        shapes.append((*shape[:-2], shape[-1], shape[-2]) if turned else shape)
    plain = NodeCall(
        op="MatMul", shapes=tuple(shapes), values=(None, None), attributes={}, opset=13, labels=call.labels
    )
    return matrix_product(plain)


def few_bit_product(call: NodeCall) -> list[Shape]:
    """onnxruntime's MatMulNBits: the right operand has few bits an element, packed into bytes by blocks."""
    shape, packed = call.shape(0), call.shape(1)
    inner, columns = call.number("K", None, 1), call.number("N", None, 1)
    bits, block = call.number("bits", 4), call.number("block_size", None, 1)
    if bits not in (2, 4, 8):
        raise Misfit("bits", bits, "2, 4 or 8")
    if not shape or shape[-1] != inner:
        raise Misfit(f"columns of {call.label(0)} {shape}", shape[-1:], f"{inner}, the attribute K")
    blocks = -(-inner // block)
    legal = (columns, blocks, block * bits // 8)
    if packed != legal and (len(packed) != 2 or packed != (columns, blocks * block * bits // 8)):
        raise Misfit(f"shape of {call.label(1)}", packed, f"{legal}, what N, K, bits and block_size say")
    call.shape(2)
    count, scales = -(-blocks * bits // 8), ((columns * blocks,), (columns, blocks))
    call.expect(2, *scales, why=": a scale a block")
    call.expect(3, (columns * count,), (columns, count), *scales, why=": a zero point a block")
    call.expect(5, (columns,), why=", the attribute N")
    return [(*shape[:-1], columns)]


_TERM = r"[A-Za-z]*(\.\.\.[A-Za-z]*)?"
#: The equation of an Einsum without its spaces.
_EQUATION = re.compile(_TERM + r"(," + _TERM + r")*(->" + _TERM + r")?")


def einsum(call: NodeCall) -> list[Shape]:
    """Einsum: a letter for each dimension, "..." for those of the batch."""
    text = call.text("equation", "")
    equation = text.replace(" ", "")
    if not _EQUATION.fullmatch(equation):
        raise Misfit("equation", text, "terms of letters, each with '...' once at most")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(call.shapes):
        raise Misfit("equation", text, f"one of {len(call.shapes)} terms, as many as operands")
    extents: dict[str, int] = {}
    batch: list[int] = []
    for position, term in enumerate(terms):
        shape = call.shape(position)
        before, dots, after = term.partition("...")
        free = len(shape) - len(before) - len(after)
        if free < 0 or (free and not dots):
            legal = f"of {len(before + after)} dimensions, as {term!r} of the equation says"
            raise Misfit(f"shape of {call.label(position)}", shape, legal)
        spelt = [*before, *range(free), *after]
        seen = [1] * (free - len(batch)) + batch
        for label in set(before + after):
            same = {extent for name, extent in zip(spelt, shape, strict=True) if name == label}
            if len(same) > 1:
                raise Misfit(f"shape of {call.label(position)}", shape, f"of one extent at both {label!r}")
        for index, (label, extent) in enumerate(zip(spelt, shape, strict=True)):
            place = index - len(before) + len(seen) - free
            known = extents.get(label, 1) if isinstance(label, str) else seen[place]
            if extent != known and 1 not in (extent, known):
                legal = f"{known} at {label!r}, as in the operands before it"
                raise Misfit(f"dimension {index} of {call.label(position)} {shape}", extent, legal)
            if isinstance(label, str):
                extents[label] = known if extent == 1 else extent
            else:
                seen[place] = known if extent == 1 else extent
        batch = seen
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        once = "".join(sorted(letter for letter in letters if letters.count(letter) == 1))
        right = ("..." if "..." in left else "") + once
    before, dots, after = right.partition("...")
    for letter in before + after:
        if letter not in extents or (before + after).count(letter) > 1:
            raise Misfit("equation", text, "one whose result has letters of the operands, each once")
    return [
        (*(extents[each] for each in before), *(batch if dots else ()), *(extents[each] for each in after))
    ]
