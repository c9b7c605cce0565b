"""Maps at the ports: the lanes of each word that a port has."""


def units(config, channels, port):
    """Bytes of a pixel at a port."""
    lanes = config.lanes // config.ports
    rest = channels % config.lanes - port * lanes
    return channels // config.lanes * lanes + max(0, min(lanes, rest))


def words(config, channels):
    return -(-channels // config.lanes)


def slices(config, pixels):
    """Return for each port the bytes of pixels, each a list of channels."""
    lanes = config.lanes // config.ports
    return [
        bytes(
            value
            for pixel in pixels
            for channel, value in enumerate(pixel)
            if channel % config.lanes // lanes == port
        )
        for port in range(config.ports)
    ]


def read_command(config, channels, rows, columns, chunk, pitch_pixels, base):
    """A map of ``rows`` rows that are ``pitch_pixels`` apart, read in chunks of ``chunk`` pixels."""
    chunks = -(-columns // chunk)
    last = columns - (chunks - 1) * chunk
    return {
        "rows": rows,
        "chunks": chunks,
        "pixels": chunk,
        "last_pixels": last,
        "token_chunks": 0,
        "words": words(config, channels),
        "total_words": rows * columns * words(config, channels),
        "ports": [
            {
                "address": base[port],
                "pitch": pitch_pixels * units(config, channels, port),
                "bytes": chunk * units(config, channels, port),
                "last_bytes": last * units(config, channels, port),
                "units": units(config, channels, port),
            }
            for port in range(config.ports)
        ],
    }


def write_command(config, channels, rows, columns, pitch_pixels, base):
    return {
        "rows": rows,
        "parts": columns,
        "words": words(config, channels),
        "ports": [
            {
                "address": base[port],
                "pitch": pitch_pixels * units(config, channels, port),
                "bytes": columns * units(config, channels, port),
                "units": units(config, channels, port),
            }
            for port in range(config.ports)
        ],
    }
