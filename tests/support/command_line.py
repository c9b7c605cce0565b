"""The ``loomwork`` command, called in this process."""

from typer.testing import CliRunner

from sim.cli.main import app


def call(*words, status=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, (result.exit_code, result.stdout, result.stderr)
    return result


def refused(*words):
    """Run a command that must end with status 2 and one line, and return the line."""
    result = call(*words, status=2)
    assert result.stdout == ""
    assert result.stderr.startswith("loomwork: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("loomwork: ").rstrip("\n")
