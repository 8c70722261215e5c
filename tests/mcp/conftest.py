"""The fixtures of the tests of the command line, for the command `mcp`."""

from tests.cli.conftest import evalstore as evalstore
from tests.cli.conftest import workspace as workspace
