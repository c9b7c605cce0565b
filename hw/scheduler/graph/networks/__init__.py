"""The shipped networks, as graphs in JSON.

The field ``made_by`` of each is the command that makes it again, in the source tree.
"""

from pathlib import Path

from hw.errors import check_one_of


def network_names() -> tuple[str, ...]:
    """Names of the shipped networks, sorted."""
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.json")))


def network_path(name: str) -> Path:
    """Return the file of a shipped network; InputError when there is none of that name."""
    check_one_of("network", name, network_names())
    return Path(__file__).parent / f"{name}.json"
