"""The assignment of the memory ports ``gmem0``, ``gmem1``, ..."""

from collections import Counter

from amaranth.lib import data

from hw.attention.config import AttentionConfig

#: The port of tables: descriptors, bitmaps, slopes and page tables.
TABLE_PORT = 0


def port_count(config: AttentionConfig) -> int:
    """Count the memory ports: one for tables, Q for queries, P of keys and P of values for each stream, W for
    results.

    With ``decode`` there are only ports of values, then of keys.  The others share them: tables and queries
    are read through the first ports of values, and results written through the first ports of keys.
    """
    if config.decodes:
        return 2 * config.decode_streams
    return result_port(config, config.result_ports)


def query_port(config: AttentionConfig, port: int) -> int:
    """Return the number of the memory port of a port of queries."""
    return TABLE_PORT + 1 + port


def key_port(config: AttentionConfig, stream: int, port: int) -> int:
    """Return the number of the memory port of a stream's port of keys."""
    if config.decodes:
        return config.decode_streams + value_port(config, stream, port)
    return query_port(config, config.query_port_count) + 2 * config.ports * stream + port


def value_port(config: AttentionConfig, stream: int, port: int) -> int:
    """Return the number of the memory port of a stream's port of values."""
    if config.decodes:
        return config.ports * stream + port
    return key_port(config, stream, port) + config.ports


def result_port(config: AttentionConfig, port: int) -> int:
    """Return the number of the memory port of a port of results."""
    if config.decodes:
        return config.decode_streams + port
    return key_port(config, config.streams, port)


def port_users(config: AttentionConfig) -> Counter[int]:
    """Count the readers and writers of each memory port."""
    lanes = [(s, p) for s in range(config.streams) for p in range(config.ports)]
    return Counter(
        [
            TABLE_PORT,
            *(query_port(config, n) for n in range(config.query_port_count)),
            *(number(config, s, p) for number in (key_port, value_port) for s, p in lanes),
            *(result_port(config, w) for w in range(config.result_ports)),
        ]
    )


class PortBytes(data.StructLayout):
    """Bytes transferred since reset, 48 bits each: ``gmemN_read_bytes`` of all ports that are read, and
    ``gmemN_write_bytes`` of the ports of results.
    """

    def __init__(self, config: AttentionConfig) -> None:
        written = [result_port(config, port) for port in range(config.result_ports)]
        read = [n for n in range(port_count(config)) if config.decodes or n not in written]
        directions = [(n, "read") for n in read] + [(n, "write") for n in written]
        super().__init__({f"gmem{n}_{direction}_bytes": 48 for n, direction in directions})
