"""
The files each test file depends on: modules by import, data by name or by folder.

* A module depends on every module it imports, anywhere in its text, and on the packages around them.  It also
  depends on modules whose dotted names stand in its strings (``python -m``, cocotb).
* A data file belongs to the modules of the nearest folder around it that has any, and to modules that name
it.
  In a folder without modules the folder's name counts, too.  In ``tests`` only names count.
* A module that nothing imports belongs to the modules that name it.
* Pages in Markdown belong to the tests that name them: messages of `sim` name pages that they never read.
* `hw.registry` loads engines by name.  A test depends on an engine that its modules name or of which it
  imports a module.  A test that reaches a reader of `ENGINES` depends on all.
* A file that none of these rules reaches may matter to every test, unless it is Markdown.
"""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_ROOMS = ("hw", "sim", "tests", "examples", "docs", "boards")
_REGISTRY = "hw/registry.py"
#: Files every test depends on, besides those that no rule reaches.
_COMMON = ("tests/conftest.py", "constraints.txt")


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """The imports, the parts of strings and the use of `ENGINES` in one module."""

    imported: frozenset[str]
    strings: frozenset[str]
    reads_engines: bool


def _facts(text: str) -> _Facts:
    imported, strings, reads_engines = set(), set(), False
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            reads_engines |= node.module == "hw.registry" and any(a.name == "ENGINES" for a in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            strings |= {part.strip(".") for part in re.split(r"[^\w.-]+", node.value)}
    return _Facts(imported=frozenset(imported), strings=frozenset(strings), reads_engines=reads_engines)


class Dependencies:
    """The files of a tree and, for each test file, those its outcome depends on."""

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self._root = root
        self._files = frozenset(files)
        python = [name for name in self._files if name.endswith(".py") and name.split("/")[0] in _ROOMS]
        self._modules = {name: _facts((root / name).read_text()) for name in python}
        self._reached: dict[str, frozenset[str]] = {}

    @classmethod
    def of(cls, root: Path) -> Dependencies:
        """Read the files that git tracks or would track."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
        return cls(root, (name for name in listed.split("\0") if name and (root / name).is_file()))

    def __call__(self, test: str) -> frozenset[str]:
        """Return the files that ``test``, a test file, depends on."""
        if test not in self._modules:
            return self._files
        return self._closure(test) | self.common

    @cached_property
    def common(self) -> frozenset[str]:
        """Files on which every test depends: the common ones, and those no rule reaches."""
        reached: set[str] = {name for name in self._files if name.endswith(".md")}
        for name in self._modules:
            reached |= {name} if _is_test(name) else set()
            reached |= self._direct[name]
        reached |= {name for engine in self._engines.values() for name in engine}
        common = {name for name in _COMMON if name in self._files}
        for name in [name for name in common if name in self._modules]:
            common |= self._closure(name)
        return frozenset(common | (self._files - reached))

    @property
    def tests(self) -> set[str]:
        """The test files."""
        return {name for name in self._modules if _is_test(name) and not name.endswith("conftest.py")}

    def digest(self, test: str) -> str:
        """Return a digest of the contents of the files that ``test`` depends on."""
        lines = "\n".join(f"{name} {self._contents[name]}" for name in sorted(self(test)))
        return hashlib.sha256(lines.encode()).hexdigest()[:16]

    def touched(self, changed: Iterable[str], tests: Iterable[str]) -> set[str]:
        """Return those of ``tests`` that depend on a changed file; all when a changed file is gone."""
        changed = set(changed)
        if any(not name.endswith(".md") for name in changed - self._files):
            return set(tests)
        return {test for test in tests if not changed.isdisjoint(self(test))}

    @cached_property
    def _contents(self) -> dict[str, str]:
        return {name: hashlib.sha256((self._root / name).read_bytes()).hexdigest() for name in self._files}

    @cached_property
    def _data(self) -> dict[str, set[str]]:
        """Data files by their own and their folder's name, and by the nearest folder with modules."""
        data: dict[str, set[str]] = {}
        folders = {name.rpartition("/")[0] for name in self._modules}
        imported = {file for facts in self._modules.values() for file in self._imported(facts)}
        imported |= {name for engine in self._engines.values() for name in engine}
        for name in self._files - imported:
            if name in self._modules and (_is_test(name) or name.endswith("__init__.py")):
                continue
            *around, last = name.split("/")
            keys = {last}
            if name in self._modules:
                keys |= {"fakes"} & set(around)
            elif "/".join(around) not in folders:
                keys |= {around[-1]} - {"data"} if around else set()
            while around and "/".join(around) not in folders:
                around.pop()
            if around and around[0] != "tests" and name not in self._modules:
                keys.add("/".join(around) + "/")
            for key in keys:
                data.setdefault(key, set()).add(name)
        return data

    def _imported(self, facts: _Facts) -> set[str]:
        return {file for dotted in facts.imported for file in self._files_of(dotted)}

    @cached_property
    def _engines(self) -> dict[str, frozenset[str]]:
        """The modules that the registry loads for each engine."""
        lines = (
            re.findall(r'^ +"(\w+)": "([\w.]+):', (self._root / _REGISTRY).read_text(), re.MULTILINE)
            if _REGISTRY in self._modules
            else []
        )
        found = {}
        for name, module in lines:
            side = re.sub(r"^hw\.", "sim.engines.", module.rpartition(".")[0])
            names = (module, f"{side}.adapter", f"{side}.commands")
            found[name] = frozenset(file for dotted in names for file in self._files_of(dotted))
        return found

    def _files_of(self, dotted: str) -> Iterator[str]:
        """Yield the module of a dotted name, and the packages around it."""
        parts = dotted.split(".")
        if parts[0] not in _ROOMS:
            return
        for end in range(1, len(parts) + 1):
            stem = "/".join(parts[:end])
            yield from (name for name in (f"{stem}.py", f"{stem}/__init__.py") if name in self._modules)

    @cached_property
    def _direct(self) -> dict[str, frozenset[str]]:
        """The files each module reaches by itself."""
        direct = {}
        for name, facts in self._modules.items():
            found = self._imported(facts) | set(self._files_of(name.removesuffix(".py").replace("/", ".")))
            if name != _REGISTRY:
                found |= {file for part in facts.strings if "." in part for file in self._files_of(part)}
            for key in (*facts.strings, f"{name.rpartition('/')[0]}/"):
                found |= self._data.get(key, set())
            reads_pages = name.startswith("tests/")
            direct[name] = frozenset(f for f in found if reads_pages or not f.endswith(".md"))
        return direct

    def _closure(self, test: str) -> frozenset[str]:
        if test not in self._reached:
            reached = self._follow({test})
            while not (engines := self._used(reached)) <= reached:
                reached = self._follow(reached | engines)
            self._reached[test] = frozenset(reached)
        return self._reached[test]

    def _follow(self, found: set[str]) -> set[str]:
        pending, found = list(found), set(found)
        while pending:
            for name in self._direct.get(pending.pop(), frozenset()) - found:
                found.add(name)
                pending.append(name)
        return found

    def _used(self, reached: set[str]) -> set[str]:
        """Return the modules of the engines that the registry loads for a test that reaches these."""
        if _REGISTRY not in reached:
            return set()
        modules = [name for name in reached if name in self._modules and name != _REGISTRY]
        every = any(self._modules[name].reads_engines for name in modules)
        named = frozenset().union(
            *(self._modules[name].strings for name in modules if name.startswith(("tests/", "examples/")))
        )
        return {
            file
            for engine, files in self._engines.items()
            if every or engine in named or not reached.isdisjoint(files)
            for file in files
        }


def _is_test(name: str) -> bool:
    return name.startswith("tests/") and name.rpartition("/")[2].startswith(("test_", "conftest"))
