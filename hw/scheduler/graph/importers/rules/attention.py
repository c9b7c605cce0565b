"""Shapes of attention and rotary embedding."""

from hw.scheduler.graph.importers.rules.call import Misfit, NodeCall, Shape, fits_into


def _parted(call: NodeCall, width: int, heads: int, position: int) -> int:
    if width % heads:
        raise Misfit(f"columns of {call.label(position)}", width, f"a multiple of {heads} heads")
    return width // heads


def _heads(call: NodeCall, position: int, count: str) -> Shape:
    """Return the shape of an operand as (B, heads, L, D); it may also be (B, L, heads * D)."""
    shape = call.shape(position)
    if len(shape) == 4:
        return shape
    if len(shape) != 3:
        raise Misfit(f"shape of {call.label(position)}", shape, "of 3 or 4 dimensions")
    heads = call.number(count, None, 1)
    return shape[0], heads, shape[1], _parted(call, shape[2], heads, position)


def _refuse_other_keys(call: NodeCall, query: Shape, key: Shape, value: Shape) -> None:
    if key[0] != query[0] or key[3] != query[3]:
        legal = f"of batch {query[0]} and {query[3]} columns a head, as {call.label(0)}"
        raise Misfit(f"shape of {call.label(1)}", call.shapes[1], legal)
    if value[:3] != key[:3]:
        raise Misfit(f"shape of {call.label(2)}", call.shapes[2], f"as {call.label(1)} {call.shapes[1]}")


def attention(call: NodeCall) -> list[Shape]:
    """Attention: queries, keys and values, each (B, heads, L, D) or (B, L, heads * D), a mask, and keys and
    values of earlier runs.
    """
    query, flat = _heads(call, 0, "q_num_heads"), len(call.shape(0)) == 3
    key, value = (_heads(call, position, "kv_num_heads") for position in (1, 2))
    _refuse_other_keys(call, query, key, value)
    if query[1] % key[1]:
        raise Misfit(
            f"heads of {call.label(0)}", query[1], f"a multiple of {key[1]}, those of {call.label(1)}"
        )
    past = call.shape(4, 4)[2] if call.has(4) else 0
    call.expect(4, (*key[:2], past, key[3]), why=": batch, heads and columns of K")
    call.expect(5, (*value[:2], past, value[3]), why=": batch, heads and columns of V, as long as past_key")
    length = past + key[2]
    mask = call.shape(3) if call.has(3) else (1, 1)
    least = 1 if call.opset >= 25 else 2
    if not least <= len(mask) <= 4:
        raise Misfit(f"shape of {call.label(3)}", mask, f"of {least} to 4 dimensions")
    # A shorter mask hides the keys behind its end.
    short = call.opset >= 24 and 1 < mask[-1] < length
    fits_into(call, 3, (*query[:3], mask[-1] if short else length))
    result = (query[0], query[2], query[1] * value[3]) if flat else (*query[:3], value[3])
    return [result, (*key[:2], length, key[3]), (*value[:2], length, value[3]), (*query[:3], length)]


def rotary_embedding(call: NodeCall) -> list[Shape]:
    """RotaryEmbedding: (B, heads, S, D) or (B, S, heads * D); tables of cosines and sines of half the rotated
    columns, by token or by position.
    """
    shape = call.shape(0)
    if len(shape) not in (3, 4):
        raise Misfit(f"shape of {call.label(0)}", shape, "of 3 or 4 dimensions")
    runtime = call.op.startswith("com.")
    # onnxruntime's may derive the number of heads from the tables.
    heads = call.number("num_heads", 0, least=0 if runtime else 1) if len(shape) == 3 else 1
    tokens = shape[1] if len(shape) == 3 else shape[2]
    cosine, sine, ids = (2, 3, 1) if runtime else (1, 2, 3)
    table = call.shape(cosine, 2 if runtime or call.has(ids) else 3)
    call.shape(sine)
    call.expect(sine, table, why=f", as {call.label(cosine)}")
    width = shape[-1] if len(shape) == 4 else (_parted(call, shape[-1], heads, 0) if heads else None)
    turned = call.number("rotary_embedding_dim", 0) or width
    if turned is not None and table[-1] * 2 != turned:
        legal = f"{turned // 2}, half of what is rotated"
        raise Misfit(f"columns of {call.label(cosine)} {table}", table[-1], legal)
    if len(table) == 3:
        call.expect(cosine, (shape[0], tokens, table[2]), why=": a row a token")
    if call.has(ids):
        call.expect(ids, (shape[0], tokens), *((), (1,)) if runtime else (), why=": a position a token")
    return [shape]


def projected_attention(call: NodeCall) -> list[Shape]:
    """onnxruntime's Attention with its projections: input (B, S, C), weights (C, columns), bias, mask, past
    (2, B, heads, P, D).
    """
    (batch, tokens, channels), heads = call.shape(0, 3), call.number("num_heads", None, 1)
    rows, columns = call.shape(1, 2)
    if rows != channels:
        raise Misfit(f"rows of {call.label(1)}", rows, f"{channels}, the columns of {call.label(0)}")
    widths = call.ints("qkv_hidden_sizes", (), 3) if call.attributes.get("qkv_hidden_sizes") else []
    widths = widths or [columns // 3] * 3
    if sum(widths) != columns or any(width % heads for width in widths):
        legal = f"the sum of queries, keys and values {widths}, of {heads} heads each"
        raise Misfit(f"columns of {call.label(1)}", columns, legal)
    call.expect(2, (columns,), why=f", the columns of {call.label(1)}")
    past = call.shape(4, 5)[3] if call.has(4) else 0
    width = widths[1] // heads
    call.expect(4, (2, batch, heads, past, width))
    return [(batch, tokens, widths[2]), (2, batch, heads, past + tokens, width)]


def multi_head_attention(call: NodeCall) -> list[Shape]:
    """onnxruntime's MultiHeadAttention: query (B, S, C), key and value the same or (B, heads, L, D), bias,
    padding mask, attention bias, keys and values of earlier runs.
    """
    (batch, tokens, channels), heads = call.shape(0, 3), call.number("num_heads", None, 1)
    if not call.has(1) or not call.has(2):
        raise Misfit(call.label(1), "left out", "given: packed queries, keys and values are not supported")
    query = (batch, heads, tokens, _parted(call, channels, heads, 0))
    key, value = (_heads(call, position, "num_heads") for position in (1, 2))
    _refuse_other_keys(call, query, key, value)
    if key[1] != heads:
        raise Misfit(f"heads of {call.label(1)}", key[1], f"{heads}, num_heads")
    call.expect(3, (2 * channels + heads * value[3],), why=": queries, keys and values")
    past = call.shape(6, 4)[2] if call.has(6) else 0
    call.expect(6, (*key[:2], past, key[3]))
    call.expect(7, (*value[:2], past, value[3]))
    length = past + key[2]
    if call.has(5):
        call.shape(5, 4)
    fits_into(call, 5, (batch, heads, tokens, length))
    return [
        (batch, tokens, heads * value[3]), (batch, heads, length, key[3]), (batch, heads, length, value[3]),
    ]  # fmt: skip


def grouped_query_attention(call: NodeCall) -> list[Shape]:
    """onnxruntime's GroupQueryAttention, whose heads share keys: query (B, S, C), keys and values of earlier
    runs (B, key heads, P, D).  Omitted keys and values follow the query in its operand.
    """
    (batch, tokens, columns), heads = call.shape(0, 3), call.number("num_heads", None, 1)
    shared = call.number("kv_num_heads", None, 1)
    if heads % shared:
        raise Misfit("num_heads", heads, f"a multiple of {shared}, kv_num_heads")
    width = _parted(call, columns, heads if call.has(1) else heads + 2 * shared, 0)
    for position in (1, 2):
        if call.has(1):
            call.shape(position)
        call.expect(position, (batch, tokens, shared * width))
    past = call.shape(3, 4)[2] if call.has(3) else 0
    for position in (3, 4):
        call.expect(position, (batch, shared, past, width))
    call.expect(5, (batch,), (batch, 1), why=": a length a sequence")
    call.one(6)
    present = (batch, shared, past + tokens, width)
    return [(batch, tokens, heads * width), present, present]
