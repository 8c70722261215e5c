"""The lanes of `log --graph`."""

from __future__ import annotations

import pytest

from evalstore.interfaces.cli.render.history import draw_lanes


@pytest.mark.parametrize(
    ("writers", "lines"),
    [
        ("", []),
        ("aaa", ["*", "|", "*", "|", "*", ""]),
        ("ab", ["*", "", "  *", ""]),
        ("aba", ["*", "|", "| *", "|", "*", ""]),
        ("abcbda", ["*", "|", "| *", "| |", "| | *", "| |", "| *", "|", "|     *", "|", "*", ""]),
    ],
)
def test_each_writer_has_a_lane_while_there_are_runs(writers: str, lines: list[str]) -> None:
    prefixes = draw_lanes(list(writers))
    assert [part.rstrip() for prefix in prefixes for part in prefix] == lines
    assert len({len(part) for prefix in prefixes for part in prefix}) <= 1


def test_many_writers_share_the_last_lane() -> None:
    writers = [f"w{number}" for number in range(12)]
    prefixes = draw_lanes(writers + writers[::-1])
    assert max(len(prefix.first.rstrip()) for prefix in prefixes) == 15
    assert all(prefix.first.count("*") == 1 for prefix in prefixes)
