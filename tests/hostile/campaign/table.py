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
        kinds = len({finding.description for finding in result.findings})
        yield (
            f"| {result.attack.description} | {result.trials:,} | {result.seconds:,.0f} "
            f"| {figures} | {kinds} |"
        )
    for result in results:
        yield from _findings(result)


def _findings(result: Result) -> Iterator[str]:
    grouped: dict[str, list[Finding]] = {}
    for finding in result.findings:
        grouped.setdefault(finding.description, []).append(finding)
    if grouped:
        yield ""
        yield f"## {result.attack.name}"
    for description, findings in sorted(grouped.items(), key=lambda item: -len(item[1])):
        cases = dict.fromkeys(
            finding.case if finding.case != "random" else f"random {finding.number}"
            for finding in findings
        )
        listed = ", ".join(list(cases)[:40]) + (", ..." if len(cases) > 40 else "")
        yield ""
        times = sum(finding.times for finding in findings)
        yield f"- **{_plain(description)}** ({times}): {listed}"
        for finding in findings[:2]:
            if finding.detail:
                yield f"  - `{_plain(finding.detail)[:300]}`"
            if finding.folder:
                yield f"  - {finding.folder}"


def _plain(text: str) -> str:
    """One printable line."""
    return " ".join(
        "".join(item if item.isprintable() else ascii(item)[1:-1] for item in text).split()
    )
