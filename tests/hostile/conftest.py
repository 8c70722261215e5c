"""What the tests of hostile workspaces share with those of the commands."""

from tests.cli.conftest import documents as documents
from tests.cli.conftest import evalstore as evalstore
