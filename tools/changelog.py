"""`python -m tools.changelog VERSION DATE`: makes the section of a release in CHANGELOG.md.

Each file of `changes` is one line, `KIND: what a user notices`. They become the entries of the
section and are removed. A change adds a file of its own, so branches do not conflict.
"""

from __future__ import annotations

import sys
from pathlib import Path

from evalstore.files.atomic_write import write_whole

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CHANGELOG.md"
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_BEGIN = "## [Unreleased]\n"


def read_fragments(folder: Path) -> dict[str, list[str]]:
    """The entries of each kind, in the order of the names of their files."""
    entries: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*.md")):
        kind, _, text = path.read_text(encoding="utf-8").strip().partition(": ")
        if kind not in KINDS or not text or "\n" in text:
            raise ValueError(f"{path.name}: not a line such as 'Added: …'; the kinds are {KINDS}")
        entries[kind].append(text)
    return entries


def released(page: str, entries: dict[str, list[str]], version: str, date: str) -> str:
    """The page with everything under [Unreleased], and the entries, in the section of a version."""
    before, begin, rest = page.partition(_BEGIN)
    unreleased, next_release, older = rest.partition("\n## ")
    section = f"{begin}\n## [{version}] - {date}\n{unreleased.rstrip()}\n"
    for kind, texts in entries.items():
        if not texts:
            continue
        added = "".join(f"- {text[0].upper()}{text[1:]}\n" for text in texts)
        head = f"\n### {kind}\n\n"
        if head in section:
            start, _, end = section.partition(head)
            entries_before, blank, others = end.partition("\n\n### ")
            section = f"{start}{head}{entries_before.rstrip()}\n{added}{blank[1:]}{others}"
        else:
            section = f"{section}{head}{added}"
    return before + section + next_release + older


def main(version: str, date: str) -> None:
    """Write the section of a release, and remove the files that it is made of."""
    folder = ROOT / "changes"
    page = released(PAGE.read_text(encoding="utf-8"), read_fragments(folder), version, date)
    write_whole(PAGE, page.encode())
    for path in folder.glob("*.md"):
        path.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
