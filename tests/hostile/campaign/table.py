"""The figures of a campaign as a table in Markdown, and what it has found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.hostile.campaign.runner import Finding, Result


def lines(results: Sequence[Result], seed: int) -> Iterator[str]:
    """The report, line by line."""
    yield f"Seed {seed}."
    yield ""
    yield "| attack | trials | seconds | figures | findings |"
    yield "|---|---:|---:|---|---:|"
    for result in results:
        figures = ", ".join(f"{count:,} {name}" for name, count in sorted(result.figures.items()))
        kinds = len({finding.what for finding in result.findings})
        yield (
            f"| {result.attack.what} | {result.trials:,} | {result.seconds:,.0f} "
            f"| {figures} | {kinds} |"
        )
    for result in results:
        yield from _findings(result)


def _findings(result: Result) -> Iterator[str]:
    grouped: dict[str, list[Finding]] = {}
    for finding in result.findings:
        grouped.setdefault(finding.what, []).append(finding)
    if grouped:
        yield ""
        yield f"## {result.attack.name}"
    for what, found in sorted(grouped.items(), key=lambda item: -len(item[1])):
        cases = dict.fromkeys(
            one.case if one.case != "random" else f"random {one.number}" for one in found
        )
        listed = ", ".join(list(cases)[:40]) + (", ..." if len(cases) > 40 else "")
        yield ""
        yield f"- **{_plain(what)}** ({sum(one.times for one in found)}): {listed}"
        for one in found[:2]:
            if one.detail:
                yield f"  - `{_plain(one.detail)[:300]}`"
            if one.folder:
                yield f"  - {one.folder}"


def _plain(text: str) -> str:
    """One printable line."""
    return " ".join(
        "".join(item if item.isprintable() else ascii(item)[1:-1] for item in text).split()
    )
