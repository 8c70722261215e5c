"""What the checkout holds, and what tests leave in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_no_file_of_keys_is_tracked() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = {Path(path).name for path in listed.stdout.splitlines()}
    assert not {name for name in names if name == ".env" or name.startswith(".env.")}


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_a_test_that_leaves_a_file_in_the_checkout_fails_the_session(
    tmp_path: Path, workers: str
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.conftest import pytest_sessionfinish, pytest_sessionstart\n"
    )
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def test_it():\n    Path(__file__).with_name('left.txt').write_text('here')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", workers, "-p", "no:cacheprovider"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "a test left a file: left.txt" in ended.stdout
