"""What the tests of hostile input share with those of the commands."""

from tests.cli.conftest import documents as documents
from tests.cli.conftest import evalstore as evalstore
from tests.cli.conftest import workspace as workspace
