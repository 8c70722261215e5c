"""What the tests of hostile input share with those of the commands."""

from tests.cli.conftest import evalstore, workspace

__all__ = ["evalstore", "workspace"]
