"""The changelog fits on a page, and each change adds a line of its own to `changes`."""

from __future__ import annotations

from tools.changelog import PAGE, ROOT, read_fragments, released

MOST_WORDS = 700


def test_the_changelog_before_a_release_fits_on_a_page() -> None:
    assert len(PAGE.read_text(encoding="utf-8").split()) <= MOST_WORDS


def test_each_file_of_changes_is_a_short_line_with_its_kind() -> None:
    texts = [text for texts in read_fragments(ROOT / "changes").values() for text in texts]
    assert [text for text in texts if len(text.split()) > 25] == []


def test_a_release_joins_the_changes_by_kind() -> None:
    page = (
        "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One.\n\n### Fixed\n\n- Two.\n\n"
        "## [0.1.0] - 2026-01-02\n\n### Added\n\n- Zero.\n"
    )
    entries = {"Added": ["three."], "Changed": [], "Fixed": [], "Security": ["four."]}
    assert released(page, entries, "0.2.0", "2026-03-04") == (
        "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-03-04\n\n"
        "### Added\n\n- One.\n- Three.\n\n### Fixed\n\n- Two.\n\n### Security\n\n- Four.\n\n"
        "## [0.1.0] - 2026-01-02\n\n### Added\n\n- Zero.\n"
    )
