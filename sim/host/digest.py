"""Names for content: equal for equal content, different for any other."""

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

#: Suffixes of the files that determine a package's behaviour.
_SOURCES = (".py", ".cpp", ".h", ".sv", ".v", ".j2", ".json", ".yaml")


def key_of(parts: Iterable[str]) -> str:
    """Return a name for ``parts``: 24 hexadecimal digits, different for any other list."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:24]


@functools.cache
def source_digest(*packages: ModuleType) -> str:
    """Return a name for the text of all sources of packages."""
    roots = [Path(package.__path__[0]) for package in packages]
    paths = [(root, path) for root in roots for path in sorted(root.rglob("*")) if path.suffix in _SOURCES]
    return key_of(part for root, path in paths for part in (f"{path.relative_to(root)}", path.read_text()))
