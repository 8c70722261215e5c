"""The screen with the versions of a test: its edits, and the verdicts on each version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType

from evalstore.core.display import (
    BLANK,
    StyledLine,
    StyledSpan,
    heading,
    plural,
    safe,
    short,
    short_names,
    text_lines,
    widest,
)
from evalstore.core.values import URGENCY
from evalstore.interfaces.tui.case_listing import CasePlace
from evalstore.interfaces.tui.grid import Column, Grid, StyledCell
from evalstore.interfaces.tui.page_lines import READING
from evalstore.interfaces.tui.render.verdicts import history_spans, verdict_cell, when
from evalstore.interfaces.tui.screens.actions import ActionsPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.results.flips.result_history import RecentVerdicts
from evalstore.results.log.log import Edit, Version

_VERDICT = 6
"""The width of the column of a candidate without a verdict."""
_EDITS = 40
"""So much of what was edited has room before the age of a run, and before further candidates."""
_MOST_HANG = 16
"""Blanks at most in front of the further rows of a line."""
_COLOURS = {"-": "old", "+": "new"}
_LIST_AGAIN = "List again"
_EMPTY = """\
No run has this test.

{page.run} makes one."""


class TestHistoryPage(ActionsPage):
    """Shows the runs at which a test changed, above its edits."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("z", "widen", "Full-width difference", id="versions.widen")
    ]
    TITLE = "Versions"
    PANELS: ClassVar[Mapping[str, str]] = {"versions": "Versions", "edits": "Edits"}
    WAY = "{cases.versions} on a case, {session.versions} on an answer"
    HELP = """\
The runs at which a test changed, the newest first, each with the newest verdicts on that version.
The edits, and the verdicts of the last eight runs, the oldest first, are below, or at the right in
a wide terminal. `fail 1/3` failed with one of three system prompts. {list.open} shows the case in
that run, with the candidate of the selected column; {list.left} and {list.right} select another."""
    DEFAULT_CSS = """
    TestHistoryPage {
        & > #panels > #edits { height: 2fr; }
        &.-broad > #panels > #edits { height: 1fr; }
        &.-wide-text #versions { display: none; }
        &.-short.-wide-text #edits { display: block; }
    }
    """

    def __init__(self, file: str, row: str, model: str = "") -> None:
        """`model` is the candidate whose column is chosen when a run is opened."""
        super().__init__()
        self.file = file
        self.row = row
        self._model = model
        self._versions: list[Version] = []
        self._candidates: list[str] = []

    def on_mount(self) -> None:
        """Read the versions."""
        self.set_title("versions", READING, self.file, self.row)
        self.grid.focus()
        self.reload()

    def reload(self) -> None:
        """Read the versions again."""
        chosen = self.highlighted
        run = chosen.run if chosen else ""

        def read() -> list[Version]:
            from evalstore.results.log.log import versions_of

            return versions_of(self.source.location, self.file, self.row)

        self.fetch(read, lambda versions: self.show_versions(versions, run))

    def refresh_ages(self) -> None:
        """Draw the list again, in which each run has its age."""
        self.grid.refresh()

    @property
    def highlighted(self) -> Version | None:
        """Return the highlighted version."""
        return self.grid.at_cursor(self._versions)

    def show_versions(self, versions: list[Version], run: str | None) -> None:
        """Show versions, with the cursor at the version of a run if it is there."""
        from evalstore.results.log.log import merge_candidates

        self._versions = versions
        self._candidates = merge_candidates(version.verdicts for version in versions)
        # A change may be of a candidate or the path, a case is gone, or a version has come back.
        different = len({tuple(sorted(it.parts.items())) for it in versions if it.parts})
        counts = plural(different, "version")
        if others := len(versions) - different:
            counts += f", {plural(others, 'other change')}"
        self.set_title("versions", counts, self.file, self.row)
        self.set_empty("" if versions else self.with_keys(_EMPTY))
        grid = self.grid
        cursor = next((n for n, version in enumerate(versions) if version.run == run), 0)
        grid.show(self._columns(), len(versions), self._cells, cursor=cursor)
        if self._model in self._candidates:
            grid.picked = self._candidates.index(self._model)

    def _columns(self) -> list[Column]:
        verdicts: list[Column] = []
        for model, name in zip(self._candidates, short_names(self._candidates), strict=True):
            words = (it.verdicts[model] for it in self._versions if model in it.verdicts)
            least = widest(_worst_cell(each).text for each in words) or _VERDICT
            width = max(least, 11, min(18, len(name)))
            verdicts.append(Column(name, width, picks=True, least=least))
        edits = max(12, widest(", ".join(version.edits) for version in self._versions))
        return [
            Column("run", 9),
            Column("when", 14, rank=1),
            Column("edited", edits, least=_EDITS),
            *verdicts,
        ]

    def _cells(self, row: int) -> Sequence[StyledCell]:
        version = self._versions[row]
        return (
            StyledCell(short(version.run)) if version.run else StyledCell("workspace", "group"),
            StyledCell(when(version.started) if version.run else "not run yet"),
            StyledCell(", ".join(version.edits)),
            *(
                _worst_cell(version.verdicts[name]) if name in version.verdicts else StyledCell("")
                for name in self._candidates
            ),
        )

    # --- what was edited

    @on(Grid.Moved, "#versions")
    def follow_cursor(self, message: Grid.Moved) -> None:
        """Show the differences from the previous version."""
        versions, number = self._versions, message.row
        if number >= len(versions):
            return
        now = versions[number]
        was = versions[number + 1] if number + 1 < len(versions) else None

        def work() -> list[StyledLine]:
            from evalstore.results.log.log import edits_between

            read = self.source.history([self.file], now.last_run or now.run)
            history = _last_verdicts(read, now, self._candidates)
            return list(_version_lines(now, was, edits_between(was, now), history))

        self.fetch(work, self.query_one(TextView).show, group="edits")

    # --- keys

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the id of the run that first had the version."""
        return (self.highlighted and self.highlighted.run) or "", "the id of the run"

    @on(Grid.Chosen, "#versions")
    def open_run(self) -> None:
        """Show the cases of the run."""
        if self.highlighted:
            picked = self._candidates[self.grid.picked :][:1]
            place = CasePlace(self.file, self.highlighted.row, *picked)
            self.browser.open("cases", self.highlighted.run, place=place)

    @property
    def footer_words(self) -> Mapping[str, str]:
        """Return that the key for the difference, and that which leaves, show the list again."""
        is_wide = self.has_class("-wide-text")
        return dict.fromkeys(("versions.widen", "page.back"), _LIST_AGAIN) if is_wide else {}

    def action_widen(self) -> None:
        """Show the difference alone, or the list again."""
        if not self._versions:
            return
        self.toggle_class("-wide-text")
        self.refresh_bindings()
        (self.query_one(TextView) if self.has_class("-wide-text") else self.grid).focus()

    def action_back(self) -> None:
        """Show the list again, or leave."""
        if self.has_class("-wide-text"):
            self.action_widen()
        else:
            super().action_back()


def _last_verdicts(
    history: RecentVerdicts, version: Version, candidates: Sequence[str]
) -> list[tuple[str, Sequence[str]]]:
    """Return the last verdicts of the case, with the names of candidate and system prompt."""
    listed: list[tuple[str, Sequence[str]]] = []
    places = {model: place for place, model in enumerate(candidates)}
    cells = sorted(history.items(), key=lambda cell: (places.get(cell[0][2], len(places)), cell[0]))
    for (_, row, model), by_prompt in cells:
        for number, words in enumerate(by_prompt.values() if row == version.row else (), 1):
            name = version.prompt_names.get(number)
            prompt = f" ({name})" if name else ""
            if words:
                listed.append((f"{model}{prompt}", words))
    return listed


def _version_lines(
    now: Version,
    was: Version | None,
    edits: Sequence[Edit],
    history: Sequence[tuple[str, Sequence[str]]],
) -> Iterator[StyledLine]:
    """Yield the verdicts on a version, the last verdicts of the case, and the edits."""
    name = f"run {short(now.run)}" if now.run else "the workspace"
    before = f" (before: run {short(was.run)})" if was and was.run else ""
    yield heading(f"{', '.join(now.edits)} in {name}{before}")
    for model, words in now.verdicts.items():
        run = now.judged_in.get(model)
        judged_in = f"  in run {short(run)}" if run and run != now.run else ""
        spans = [StyledSpan(safe(model))]
        for word, prompt in zip_longest(words, now.prompts_of(model)):
            cell = verdict_cell(word)
            spans.append(StyledSpan(f"  {cell.text}", cell.colour))
            if prompt is not None:
                spans.append(StyledSpan(safe(f" ({prompt})"), "faint"))
        yield StyledLine((*spans, StyledSpan(judged_in, "faint")))
    for model, last in history:
        if len(last) > 1:
            head, *signs = history_spans(last)
            yield StyledLine((StyledSpan(f"{safe(model)}{head.text}", "faint"), *signs))
    for text in now.candidates:
        yield from text_lines(text)
    if not edits and was is not None:
        yield from text_lines("What candidates and judges are shown is the same.")
    for edit in edits:
        yield BLANK
        yield heading(edit.part)
        for number, hunk in enumerate(edit.hunks):
            if number:
                yield StyledLine((StyledSpan("  ⋯", "faint"),))
            for line in hunk:
                colour = _COLOURS.get(line.sign, "")
                text = "".join(piece.text for piece in line.pieces).expandtabs(4)
                blanks = len(text) - len(text.lstrip(" "))  # before its further rows, too
                yield StyledLine(
                    (
                        StyledSpan(f"{line.sign} ", colour),
                        *(
                            StyledSpan(
                                safe(piece.text, lines=True).expandtabs(4),
                                colour if piece.differs and was else "",
                            )
                            for piece in line.pieces
                        ),
                    ),
                    hang=len(line.sign) + 1 + min(_MOST_HANG, blanks),
                )


def _worst_cell(words: Sequence[str]) -> StyledCell:
    """Return the worst verdict on a candidate; when there are others, with the number of them."""
    worst = min(words, key=URGENCY.index)
    cell = verdict_cell(worst)
    if len(set(words)) == 1:
        return cell
    return StyledCell(f"{cell.text} {words.count(worst)}/{len(words)}", cell.colour)
