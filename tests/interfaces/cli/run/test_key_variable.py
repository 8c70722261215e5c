"""`apiKeyEnvVar` names a variable; a key in its place is refused and never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalstore.core.errors import FileProblem
from evalstore.workspace.model_files import read_provider

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interfaces.cli.conftest import Evalstore

FILE = "code: desk\ntype: openai-compatible\nbaseURL: https://a.example/v1\napiKeyEnvVar: {}\n"


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-1234567890abcdef",
        "sk_live_1234567890abcdef",
        "AIzaSyA1234567890abcdefghijklmnop",
        "gsk_abcdefghijklmnop1234567890",
        "aB3dE5fG7hI9jK1lM3nO5pQ7",
        "'my key'",
        "'$OPENAI_API_KEY'",
        "1KEY",
    ],
)
def test_what_is_not_a_name_is_refused_without_being_shown(
    key: str, workspace: Path, evalstore: Evalstore
) -> None:
    (workspace / "providers").mkdir()
    (workspace / "providers/desk.yaml").write_text(FILE.format(key))
    ran = evalstore("check")
    message = "error: providers/desk.yaml:4: 'apiKeyEnvVar' is not the name of a variable\n"
    assert (ran.exit_code, message in ran.stderr) == (2, True)
    assert key.strip("'") not in ran.stdout + ran.stderr


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "my_key", "_K", "AZURE_OPENAI_KEY_2", "PERPLEXITYAI_API_KEY", "HF_TOKEN"],
)
def test_names_are_taken(name: str) -> None:
    assert read_provider(FILE.format(name)).key_variable == name


def test_a_number_is_not_a_name() -> None:
    with pytest.raises(FileProblem, match="must be a text"):
        read_provider(FILE.format(5))
