"""Effect of weight streams on the gates, read beat by beat from the text of the loaders."""

import numpy as np


class Beats:
    """A stream cut into beats, taken one after the other."""

    def __init__(self, stream, beat_bits):
        assert stream.size % (beat_bits // 8) == 0
        self.left = list(stream.reshape(-1, beat_bits // 8))
        self.beat_bits = beat_bits

    def take(self, bits):
        """Take the whole beats that ``bits`` fill: an integer, first beat lowest."""
        count = -(-bits // self.beat_bits)
        raw = b"".join(bytes(beat) for beat in self.left[:count])
        del self.left[:count]
        return int.from_bytes(raw, "little")


def unpack(value, **widths):
    """Cut fields off a number, lowest first."""
    fields = {}
    for name, width in widths.items():
        fields[name] = value & (1 << width) - 1
        value >>= width
    return fields


def signed(value, bits):
    return value - (1 << bits) if value >> bits - 1 else value


def weights(value, count, bits):
    return np.array([signed(value >> n * bits & (1 << bits) - 1, bits) for n in range(count)], np.int64)


def parameters(value):
    found = unpack(value, bias=48, multiplier=16, post=16, shift=6)
    return {**found, "bias": signed(found["bias"], 48), "post": signed(found["post"], 16)}


def scaled(total, given, low, high):
    """One channel's results from its sums."""
    half = (1 << given["shift"]) >> 1
    exact = [(int(a) * given["multiplier"] + half >> given["shift"]) + given["post"] for a in total]
    return np.clip(exact, low, high)


def point_results(config, stream, beat_bits, words, out_words, low, high):
    """Result of the pointwise array for ``words`` [pixels, words, L]: [pixels, out_words * L]."""
    beats = Beats(stream, beat_bits)
    out = np.zeros((len(words), out_words * config.lanes), np.int64)
    sums, given, header = None, None, {"ends": 0}
    while not header["ends"]:
        header = unpack(
            beats.take(1),
            **{"kind": 3, "parameters": 1, "first": 1, "last": 1, "ends": 1, "digit": 2},
            **{"word": 16, "slice": 4, "out_word": 16, "out_slice": 4},
        )
        assert header["kind"] == 3
        assert header["parameters"] == header["first"]
        if header["parameters"]:
            records = beats.take(128 * config.outputs)
            given = [parameters(records >> 128 * e & (1 << 128) - 1) for e in range(config.outputs)]
        flat = beats.take(config.tile_bits)
        tile = weights(flat, config.outputs * config.inputs, config.weight_bits)
        lanes = header["slice"] * config.inputs + np.arange(config.inputs)
        x = words[:, header["word"], lanes].astype(np.int64) << 8 * header["digit"]
        products = x @ tile.reshape(config.outputs, config.inputs).T
        sums = products + [one["bias"] for one in given] if header["first"] else sums + products
        if header["last"]:
            place = header["out_word"] * config.lanes + header["out_slice"] * config.outputs
            for e in range(config.outputs):
                out[:, place + e] = scaled(sums[:, e], given[e], low, high)
    assert not beats.left
    return out


def tap_results(config, stream, beat_bits, samples, words, steps, low, high):
    """Result of the depthwise cells for ``samples`` [pixels, taps, words * L]; ``steps`` 0: of strips."""
    beats = Beats(stream, beat_bits)
    lanes = words * config.lanes
    taps = np.zeros((lanes, max(9, steps * config.taps)), np.int64)
    header = {"ends": 0}
    while not header["ends"]:
        header = unpack(beats.take(1), kind=3, ends=1, unused=4, records=24)
        whole = beats.take(128 * header["records"])
        records = [whole >> 128 * n & (1 << 128) - 1 for n in range(header["records"])]
        if header["kind"] == 0:
            assert len(records) == words * steps * config.lanes // 8
            for n, record in enumerate(records):  # for each word and step, a record for each cell of 8
                rest, cell = divmod(n, config.lanes // 8)
                word, step = divmod(rest, steps)
                values = weights(record, config.taps * 8, config.weight_bits).reshape(config.taps, 8)
                first = word * config.lanes + cell * 8
                taps[first : first + 8, step * config.taps : (step + 1) * config.taps] = values.T
        elif header["kind"] == 1:
            taps[:, :9] = [weights(record, 9, config.weight_bits) for record in records]
        else:
            given = [parameters(record) for record in records]
            assert len(given) == lanes
    assert not beats.left
    out = np.zeros((len(samples), lanes), np.int64)
    for lane in range(lanes):
        total = samples[:, :, lane].astype(np.int64) @ taps[lane, : samples.shape[1]]
        out[:, lane] = scaled(total + given[lane]["bias"], given[lane], low, high)
    return out


def digits(samples, count):
    """Balanced digits of base 256 of samples: ``count`` of them, in front."""
    balanced = samples.astype(np.int64) + 0x80808080
    bytes_ = np.stack([(balanced >> 8 * n & 255) ^ 128 for n in range(count)])
    return bytes_.astype(np.uint8).view(np.int8)
