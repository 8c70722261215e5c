"""The fixtures of the tests of the command line, for the command `mcp`."""

from tests.interfaces.cli.conftest import evalstore as evalstore
from tests.interfaces.cli.conftest import workspace as workspace
