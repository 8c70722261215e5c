"""The methods of a workspace that write results for people and other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.api.names import any_revision, run_revision
from evalstore.api.result_reader import ResultReader

if TYPE_CHECKING:
    from evalstore.api.options import StrPath
    from evalstore.html_report.report import WrittenReport
    from evalstore.operations.exports.formats import Format
    from evalstore.runs import Run


class ResultWriter(ResultReader):
    """Reports and exports of the results of a run, or of the workspace as it is now."""

    def report(
        self, file: StrPath, run: Run | str | None = None, *, compare: Run | str | None = None
    ) -> WrittenReport:
        """Write the results of the workspace (None), or of a run, as one HTML file.

        The file needs no network. It is compared with `compare`, else with the previous run.
        A file that exists is replaced only if it is a report.
        """
        from evalstore.html_report.report import write_report

        with self._use() as location:
            other = None if compare is None else run_revision(compare)
            path = str(Path(file).absolute())
            return write_report(location, any_revision(run), path, compare=other)

    def report_markdown(self, run: Run | str = "@", *, compare: Run | str | None = None) -> str:
        """Return what a run broke and why, whether that may be chance, and its cost, as Markdown.

        It is compared with `compare`, else with the previous run. Texts of models are code in it.
        """
        from evalstore.operations.markdown_report import markdown_report

        with self._use() as location:
            other = None if compare is None else run_revision(compare)
            return markdown_report(location, run_revision(run), other)

    def export(
        self, file: StrPath, run: Run | str | None = "@", *, format: Format | None = None
    ) -> None:
        """Write the results of a run, or of the workspace (None), for other programs.

        They are the rows of `to_rows`. A file that exists is replaced. The format follows from the
        suffix, such as `.csv`, unless it is named. A format of several files, such as `inspect`,
        writes a new folder. Raises `EvalstoreError` for Parquet without pyarrow.
        """
        from evalstore.operations.export import write_exports

        with self._use() as location:
            write_exports(location, any_revision(run), [Path(file).absolute()], format)
