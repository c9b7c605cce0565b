"""Templates of AccelForge's files: Jinja with a statement ``assert``, in a sandbox."""

from collections.abc import Collection, Mapping
from pathlib import Path

import jinja2
from jinja2 import meta, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import SandboxedEnvironment

from hw.errors import InputError


class _Assert(Extension):
    """``{% assert CONDITION, "MESSAGE" %}``."""

    def __init__(self, environment: jinja2.Environment) -> None:
        super().__init__(environment)
        self.tags = {"assert"}

    def parse(self, parser: Parser) -> nodes.Node:
        """Read the statement, and check it when the text is made."""
        line = next(parser.stream).lineno
        holds = parser.parse_expression()
        message = parser.parse_expression() if parser.stream.skip_if("comma") else nodes.Const("")
        return nodes.ExprStmt(self.call_method("_check", [holds, message]), lineno=line)

    def _check(self, holds: object, message: object) -> str:
        if not holds:
            raise _FailedError(str(message))
        return ""


class _FailedError(Exception):
    """A condition of ``assert`` that does not hold."""


def rendered(path: Path, text: str, variables: Mapping[str, int]) -> str:
    """Return the text that a template makes; without loops each line stays where it is.

    Raises `InputError` for a template that is wrong, a variable without a value, a value without a variable,
    and includes.
    """
    environment = SandboxedEnvironment(undefined=jinja2.StrictUndefined, extensions=[_Assert])
    try:
        parsed = environment.parse(text)
        _check_no_include(path, parsed)
        used = meta.find_undeclared_variables(parsed) - set(environment.globals)
        _check_names(path, variables, used)
        return environment.from_string(text).render(variables)
    except jinja2.TemplateSyntaxError as error:
        raise InputError("template", error.message, "one of Jinja", where=f"{path}:{error.lineno}") from error
    except jinja2.UndefinedError as error:
        legal = "of variables with a value: give one with --dim NAME=VALUE"
        raise InputError("template", error.message, legal, where=_where(path, error)) from error
    except _FailedError as error:
        raise InputError("variables", str(error), "such that its conditions hold", where=str(path)) from error
    except InputError:
        raise
    except (jinja2.TemplateError, ArithmeticError, OverflowError, TypeError, ValueError) as error:
        raise InputError("template", str(error), "one that can be evaluated", where=str(path)) from error


def _check_no_include(path: Path, template: nodes.Template) -> None:
    """Refuse other files, by Jinja's statements or by AccelForge's function."""
    for node in template.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends, nodes.Call)):
        called = node.node if isinstance(node, nodes.Call) else nodes.Name("include", "load")
        if not isinstance(called, nodes.Name) or called.name != "include":
            continue
        legal = "left out: a template reads no other file; write the included text in its place"
        raise InputError("include", "given", legal, where=f"{path}:{node.lineno}")


def _check_names(path: Path, variables: Mapping[str, int], used: Collection[str]) -> None:
    for name in variables:
        if name not in used:
            legal = f"one of {', '.join(sorted(used))}" if used else "left out: the template has no variable"
            raise InputError("--dim", name, legal, where=str(path))


def _where(path: Path, error: Exception) -> str:
    """Return file and line of the template that an exception passed through."""
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{path}:{line}" if line else str(path)
