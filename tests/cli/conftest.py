"""What the tests of the command line share: a tiny model, and a way to run a command."""

import pytest

from minfer_lib import cli


@pytest.fixture
def model(tiny):
    return str(tiny(format="Q8_0"))


@pytest.fixture
def run(capsys):
    """run(*arguments) -> (exit status, stdout, stderr)"""

    def run(*arguments):
        capsys.readouterr()
        status = cli.main(list(arguments))
        return status, *capsys.readouterr()

    return run
