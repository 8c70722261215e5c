"""The methods of a workspace that copy results between stores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from evalstore.interfaces.api import options
from evalstore.interfaces.api.names import any_revision, run_revision
from evalstore.interfaces.api.options import SelectionKeywords, StrPath
from evalstore.interfaces.api.result_reader import ResultReader

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.exchange.exports.formats import Format
    from evalstore.exchange.sync.pull import PullReport
    from evalstore.exchange.sync.push import BundleReport, PushReport
    from evalstore.exchange.sync.remote_gc import GarbageReport
    from evalstore.interfaces.html.report import WrittenReport


class ResultWriter(ResultReader):
    """Reports and exports of the results of a run, or of the workspace as it is now."""

    def report(
        self, file: StrPath, run: Run | str | None = None, *, compare: Run | str | None = None
    ) -> WrittenReport:
        """Write the results of the workspace (None), or of a run, as one HTML file.

        The file needs no network. It is compared with `compare`, else with the previous run.
        A file that exists is replaced only if it is a report.
        """
        from evalstore.interfaces.html.report import write_report

        with self._use() as location:
            other = None if compare is None else run_revision(compare)
            path = str(Path(file).absolute())
            return write_report(location, any_revision(run), path, compare=other)

    def report_markdown(self, run: Run | str = "@", *, compare: Run | str | None = None) -> str:
        """Return what a run broke and why, whether that may be chance, and its cost, as Markdown.

        It is compared with `compare`, else with the previous run. Texts of models are code in it.
        """
        from evalstore.exchange.markdown_report import markdown_report

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
        from evalstore.exchange.export import write_exports

        with self._use() as location:
            write_exports(location, any_revision(run), [Path(file).absolute()], format)


class ResultSharing(ResultWriter):
    """Remotes, bundles and other stores.

    `remote` is the name of a remote of `evalstore.yaml`; None is `origin`, or the only one. For
    `push` and `pull` it can be the path of a bundle, and for `pull` another store. Every row is
    checked before it is stored.
    """

    def push(
        self,
        remote: str | None = None,
        *,
        since: str | None = None,
        exclude_tags: Iterable[str] = (),
        with_failures: bool = False,
        allow_keys: bool = False,
        dry_run: bool = False,
    ) -> PushReport:
        """Copy to a remote what it does not have.

        With `since`, a revision, only the runs after it. Raises `EvalstoreError` when there are
        keys in what would be pushed, unless `allow_keys`.
        """
        from evalstore.exchange.sync.push import push

        with self._use() as location:
            return push(
                location,
                remote,
                since=since,
                exclude_tags=options.texts("exclude_tags", exclude_tags),
                with_failures=with_failures,
                allow_keys=allow_keys,
                dry_run=dry_run,
            )

    def pull(self, remote: str | None = None, *, dry_run: bool = False) -> PullReport:
        """Copy from a remote what the store does not have."""
        from evalstore.exchange.sync.pull import pull

        with self._use() as location:
            return pull(location, remote, dry_run=dry_run)

    def pull_for_plan(
        self, remote: str | None = None, **selection: Unpack[SelectionKeywords]
    ) -> PullReport:
        """Copy only the answers and judgements that a run with this selection would ask for.

        Without a selection, also the newest run, which tells what broke.
        """
        from evalstore.exchange.sync.pull_for_plan import pull_for_plan

        options.require_known("pull_for_plan", selection, SelectionKeywords.__optional_keys__)
        with self._use() as location:
            return pull_for_plan(location, remote, options.selection_of(selection))

    def collect_garbage(
        self, remote: str | None = None, *, grace: str | None = None, dry_run: bool = False
    ) -> GarbageReport:
        """Compact the small pushes of a remote, and delete its files that are no longer needed.

        Files stay as long as `grace` says (default: `14d`) after they were marked. All rows stay.
        """
        from evalstore.exchange.sync.remote_gc import collect_remote_garbage

        with self._use() as location:
            return collect_remote_garbage(location, remote, grace=grace, dry_run=dry_run)

    def create_bundle(
        self,
        file: StrPath,
        *,
        since: str | None = None,
        exclude_tags: Iterable[str] = (),
        with_failures: bool = False,
        allow_keys: bool = False,
    ) -> BundleReport:
        """Write all results to one file, or with `since` those of the runs after a revision."""
        from evalstore.exchange.sync.push import create_bundle

        with self._use() as location:
            return create_bundle(
                location,
                Path(file).absolute(),
                since=since,
                exclude_tags=options.texts("exclude_tags", exclude_tags),
                with_failures=with_failures,
                allow_keys=allow_keys,
            )

    def unbundle(self, file: StrPath, *, dry_run: bool = False) -> PullReport:
        """Copy from a bundle what the store does not have."""
        return self.pull(str(Path(file).absolute()), dry_run=dry_run)

    def merge(self, store: StrPath, *, dry_run: bool = False) -> PullReport:
        """Copy from another store what this one does not have; the other is never changed.

        It is named by the path of its file, or its address in PostgreSQL.
        """
        from evalstore.store.location import is_url

        name = str(store)
        return self.pull(name if is_url(name) else str(Path(name).absolute()), dry_run=dry_run)
