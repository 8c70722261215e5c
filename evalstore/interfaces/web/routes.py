"""The pages of results: the list of runs, runs, the workspace as it is now, cases, and labels."""

from __future__ import annotations

import asyncio
import json
import time
from array import array
from asyncio import to_thread
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode

from aiohttp import web

from evalstore.core.display import (
    WORKSPACE,
    cost_text,
    is_simulated,
    plural,
    safe,
    short_names,
    simulated,
)
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.files.atomic_write import temporary_file
from evalstore.interfaces.html.case_table import CasePlaces
from evalstore.interfaces.html.report import ServedPage, build_report, run_row, with_changes
from evalstore.interfaces.html.templates import (
    Drawing,
    content_policy,
    read_asset,
    read_script,
    render,
)
from evalstore.interfaces.web.labelling import LabelPages
from evalstore.interfaces.web.local_server import LocalSite, serve_site
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location
from evalstore.results.compare.change_causes import LABELS
from evalstore.results.compare.diff import compare_workspace
from evalstore.results.flips.verdict_changes import Outcome
from evalstore.results.log.log import LogEntry, log
from evalstore.results.report_overview import (
    TrendRun,
    add_rates,
    count_rates,
    count_results,
    run_notes,
)
from evalstore.results.show.show import open_revision
from evalstore.results.show.shown_item import find_case
from evalstore.results.stats.stats import sum_spent
from evalstore.results.table.cases import store_stamp
from evalstore.runs.run_text import scope_text
from evalstore.runs.status.status import describe_workspace, find_lost_labels
from evalstore.runs.status.status_text import lost_labels_text, work_price_text
from evalstore.store.revisions import WORK, names_of_runs, resolve_run
from evalstore.workspace.settings.settings import candidate_order

if TYPE_CHECKING:
    from collections.abc import Sequence

Say = Callable[[str], None]
RUN_LIST = "runs"
"""The name of the first page, beside those of runs by their ids."""
_FORM = "application/x-www-form-urlencoded"
_SECONDS = 1.0
"""Between two looks at the store."""
_SHARE = 3
"""How many times longer than making a page takes pass at least before it is made again."""


def serve(location: Location, port: int, say: Say) -> None:
    """Serve the results of a workspace until the program is interrupted; port 0 is any free one.

    Says the address once it can be opened. Raises `EvalstoreError`.
    """
    site = ResultsSite(location)
    try:
        site.pages.read_state()  # a store that cannot be read is told before an address
        serve_site(site, port, say)
    finally:
        site.pages.close()


class ResultsSite(LocalSite):
    """The pages of a workspace's results."""

    def __init__(self, location: Location) -> None:
        super().__init__()
        script, style = read_script("report.js"), read_asset("report.css")
        others = read_asset("list.js"), read_script("label.js")
        policy = content_policy(script, style, *others, is_served=True)
        self.policy = f"{policy}; frame-ancestors 'none'"
        self.pages = BuiltPages(location, self.base)
        self.labelling = LabelPages(self.pages.location, self.pages.name, self.base)
        self._closing = asyncio.Event()

    def routes(self) -> list[web.AbstractRouteDef]:
        """Return the pages, the stream of changes, and what takes labels."""
        return [
            web.get(f"{self.base}/", partial(self._show, run=RUN_LIST)),
            web.get(f"{self.base}/work", partial(self._show, run=WORKSPACE)),
            web.get(f"{self.base}/run/{{revision}}", self.show_run),
            web.get(rf"{self.base}/case/{{case:[\s\S]+}}", self.show_case),
            web.get(f"{self.base}/changes", self.stream_changes),
            web.get(f"{self.base}/label", self.show_next_answer),
            web.get(f"{self.base}/label/{{session}}", self.show_answer),
            web.get(f"{self.base}/label/{{session}}/file/{{id}}", self.send_file),
            web.post(f"{self.base}/label/{{session}}", self.give_label),
        ]

    def application(self) -> web.Application:
        """Return the pages; their errors are answers."""
        application = super().application()
        application.middlewares.insert(0, self._tell_error)
        return application

    @web.middleware
    async def _tell_error(self, request: web.Request, handler: Any) -> web.StreamResponse:
        try:
            return await handler(request)  # type: ignore[no-any-return]
        except EvalstoreError as error:
            status = 404 if isinstance(error, RevisionError) else 409
            hint = f"\nhint: {error.hint}" if error.hint else ""
            name, base, text = self.pages.name, self.base, f"error: {error}{hint}\n"
        except web.HTTPError as error:  # also for who does not know the token: no names and links
            name, base, status, text = "evalstore", "", error.status, f"error: {error.text}\n"
            if status == 404:
                text = (
                    "error: this address has no page\nhint: 'evalstore serve' has a new address "
                    "each time it is started: open the one that it printed last\n"
                )
        text = safe(text, lines=True)
        if "text/html" not in request.headers.get("Accept", ""):
            return web.Response(text=text, status=status)
        following, sent = "", dict[str, str]()
        if status != 403 and request.content_type == _FORM:
            with suppress(ValueError, LookupError, web.HTTPError):
                sent = {name: str(text) for name, text in (await request.post()).items()}
        if base and status == 404 and "session" in request.match_info:
            fields = {**request.query, **sent}
            known = {name: fields.get(name, "") for name in ("by", "only", "case")}
            following = urlencode({**known, "after": request.match_info["session"]})
        note = sent.get("note", "") if request.method == "POST" else None
        shown = {"problem": text, "following": following, "note": note}
        return _html(render("error.html", workspace=safe(name), base=base, **shown), status)

    async def close(self, _application: web.Application) -> None:
        """End the streams of changes."""
        self._closing.set()

    async def add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Let a page with a form say where the form comes from, but to this server alone."""
        await super().add_headers(request, response)
        if request.path.startswith(f"{self.base}/label"):
            response.headers["Referrer-Policy"] = "same-origin"

    async def show_next_answer(self, request: web.Request) -> web.StreamResponse:
        """Redirect to an answer that the person has not labelled, or return the last page."""
        person, only, place, after = self._labels_of(request)
        found = await to_thread(self.labelling.first, person, only, after, place)
        if found and "end" not in request.query:
            by = request.query.get("by", "").strip()
            raise web.HTTPFound(self._label_address(found.session, found.place, by, only))
        state = (await to_thread(self.pages.read_state)).state
        return _html(await to_thread(self.labelling.end, person, only, state))

    async def show_answer(self, request: web.Request) -> web.StreamResponse:
        """Return the page on which an answer is labelled."""
        person, only, place, _ = self._labels_of(request)
        session = request.match_info["session"]
        try:
            return _html(await to_thread(self.labelling.page, session, place, person, only))
        except EvalstoreError as error:
            if await to_thread(self.labelling.own, session, place, person) is None:
                raise
            text = f"your label is stored, but its page cannot be shown: {error}"
            raise EvalstoreError(text, hint=error.hint) from error

    async def send_file(self, request: web.Request) -> web.StreamResponse:
        """Send a file of a question to be saved: no browser shows or runs it."""
        session, id = request.match_info["session"], request.match_info["id"]
        place = request.query.get("case", "")
        path, data = await to_thread(self.labelling.file, session, place, id)
        name = quote(path.rpartition("/")[2], safe="")
        saved = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        return web.Response(body=data, headers=saved, content_type="application/octet-stream")

    async def give_label(self, request: web.Request) -> web.StreamResponse:
        """Store a label, or go to the next answer, but not without a note that is not stored."""
        session = request.match_info["session"]
        if request.content_type != _FORM:  # another one might have files
            raise EvalstoreError("nothing is stored: a label is sent by the form of its page")
        try:
            form = await request.post()
        except (ValueError, LookupError) as error:
            raise EvalstoreError("nothing is stored: the form was not sent as UTF-8") from error
        fields = ("by", "only", "verdict", "note", "seen", "judging")
        person, only, verdict, note, *shown = (str(form.get(name, "")).strip() for name in fields)
        answer = session, request.query.get("case", "")
        if verdict == "none" and "confirmed" not in form:
            raise EvalstoreError("a label is removed by the form 'Remove my label'")
        if refused := await to_thread(self.labelling.label, *answer, verdict, note, person, *shown):
            page = await to_thread(self.labelling.page, *answer, person, only, note, refused)
            return _html(page, web.HTTPConflict.status_code)
        if verdict in ("skip", "next"):
            query = urlencode({"by": person, "only": only, "after": session, "case": answer[1]})
            raise web.HTTPSeeOther(f"{self.base}/label?{query}")
        raise web.HTTPSeeOther(self._label_address(*answer, person, only))

    def _label_address(self, session: str, place: str, person: str, only: str) -> str:
        query = urlencode({"by": person, "only": only, "case": place})
        return f"{self.base}/label/{session}?{query}"

    def _labels_of(self, request: web.Request) -> list[str]:
        """Return who labels, the words that limit the answers, the case, and the last answer.

        A cookie has the name that was typed last: unlike other memory of a browser, it is the same
        for all ports.
        """
        query, typed = request.query, unquote(request.cookies.get("evalstore-by", ""))
        by, only, after = (query.get(name, "").strip() for name in ("by", "only", "after"))
        return [by or typed, safe(only), query.get("case", ""), safe(after)]

    async def show_run(self, request: web.Request) -> web.StreamResponse:
        """Return the page of a run; other names of it than its id are redirected."""
        revision = request.match_info["revision"]
        if revision == WORK:
            raise web.HTTPFound(f"{self.base}/work")
        run = await to_thread(self.pages.find_run, revision)
        if run != revision:
            raise web.HTTPFound(f"{self.base}/run/{run}")
        return await self._show(request, run)

    async def _show(self, _request: web.Request, run: str) -> web.StreamResponse:
        """Return the page of a run."""
        return web.FileResponse((await to_thread(self.pages.build, run)).path)

    async def show_case(self, request: web.Request) -> web.StreamResponse:
        """Redirect to a case in the newest run that has it, or in the run of the query `run`."""
        revision = request.query.get("run")
        run, number = await to_thread(self.pages.find_case, request.match_info["case"], revision)
        raise web.HTTPFound(f"{self.base}/run/{run}#case-{number + 1}")

    async def stream_changes(self, request: web.Request) -> web.StreamResponse:
        """Send the newest run and the state of the store now, and whenever they change."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        sent = None
        while not self._closing.is_set():
            state = await to_thread(self.pages.read_state)
            if state != sent:
                sent = state
                await response.write(f"data: {json.dumps(state._asdict())}\n\n".encode())
            page = self.pages.kept.get(WORKSPACE)
            seconds = max(_SECONDS, _SHARE * page.seconds) if page else _SECONDS
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), seconds)
        return response


def _html(text: bytes, status: int = 200) -> web.Response:
    return web.Response(body=text, status=status, content_type="text/html", charset="utf-8")


# --- makes the pages of runs, and keeps the last ones as files


_MOST_PAGES = 8
"""The most pages that are kept; one of 100,000 cases has 55 MiB."""


@dataclass(frozen=True, slots=True)
class BuiltPage:
    """A page in a file."""

    path: Path
    cases: CasePlaces
    """The numbers of its cases."""
    ended: float
    seconds: float
    """How long it took."""
    shown: object = None
    """What a page of a run depends on."""


class BuiltPages:
    """The pages of a workspace, each made when it is first asked for; one at a time."""

    def __init__(self, location: Location, base: str) -> None:
        """`base` is the path below which the pages are."""
        root = open_workspace(location).root
        # A path in an address is relative to the workspace.
        self.location = location if location.config else replace(location, directory=root)
        self.name = root.name
        self._base = base
        self._folder = TemporaryDirectory(prefix="evalstore-pages-")
        self.kept: dict[str, BuiltPage] = {}
        """The pages that were made last, by run."""
        self._lock = Lock()
        self._maker = ThreadPoolExecutor(max_workers=1)
        """Reads all results: memory that several threads have freed would not be used again."""

    def close(self) -> None:
        """Remove the files."""
        self._maker.shutdown()
        self._folder.cleanup()

    def read_state(self) -> ServedPage:
        """Return what has been stored so far; raises `StoreError`."""
        text = repr(store_stamp(self.location))
        with open_store(self.location) as store:
            newest = store.find_run_before()
        state = sha256(text.encode()).hexdigest()[:16]
        return ServedPage(self._base, newest.id if newest else "", state)

    def find_run(self, revision: str) -> str:
        """Return the id of a run; raises `RevisionError`."""
        with open_store(self.location) as store:
            return resolve_run(store, revision).id

    def find_case(self, case: str, revision: str | None) -> tuple[str, int]:
        """Return the run that has the newest result of a case, and its number in the page.

        Raises `EvalstoreError` when there is no such case.
        """
        run, result = self._maker.submit(find_case, self.location, case, revision).result()
        number = self.build(run.id).cases.find(result.file, result.row, result.prompt_number)
        assert number is not None  # the page has all cases of the run
        return run.id, number

    def build(self, run: str) -> BuiltPage:
        """Return the page of a run by its id, of the workspace as it is now, or the list of runs.

        That of a run is made again after a change of what it shows, as of labels; the others
        always, but not all the time if it takes long. Raises `EvalstoreError`.
        """
        with self._lock:
            page, shown = self.kept.get(run), None
            if run not in (WORKSPACE, RUN_LIST):
                with open_store(self.location) as store:
                    runs = store.load_run(run), store.find_run_before(), store.count_runs()
                    shown = runs, store.count_labels(), names_of_runs(store)
            age = time.monotonic() - page.ended if page else 0
            if page is None or not (page.shown == shown if shown else age < page.seconds):
                page = replace(self._maker.submit(self._make, run).result(), shown=shown)
                self.kept.pop(run, None)
                self.kept[run] = page
                while len(self.kept) > _MOST_PAGES:
                    self.kept.pop(next(iter(self.kept))).path.unlink(missing_ok=True)
            return page

    def _make(self, run: str) -> BuiltPage:
        started = time.monotonic()
        served, places = self.read_state(), CasePlaces([], array("Q"))
        path = Path(self._folder.name) / f"{run}.html"
        try:
            with temporary_file(path) as out:
                if run == RUN_LIST:
                    out.write(run_list_page(self.location, self.name, served))
                else:
                    revision = WORK if run == WORKSPACE else run
                    places = build_report(self.location, revision, out, served=served).places
        except OSError as error:
            raise EvalstoreError(
                f"the page cannot be written to '{path.parent}': {error.strerror or error}"
            ) from error
        ended = time.monotonic()
        return BuiltPage(path, places, ended, ended - started)


# --- the first page: the workspace and the runs, with the rates of the candidates


MOST_RUNS = 200
"""The most runs of the page."""


def run_list_page(location: Location, name: str, served: ServedPage) -> bytes:
    """Return the page; `name` is that of the workspace. Raises `StoreError`."""
    history = log(location, limit=MOST_RUNS)
    entries: Sequence[LogEntry] = history.entries
    with open_store(location) as store:
        runs = [entry.run for entry in entries]
        rates = count_rates(store, runs)
        spent, total = sum_spent(store), store.count_runs()
        rates += [{}] * (len(entries) - len(rates))
        listed = [*add_rates(location, store, entries, history.compared, rates)]
    now, text = _read_workspace(location)
    order = candidate_order(open_workspace(location).settings)
    names = sorted({*chain(now.rates, *rates)}, key=order)
    of_workspace = run_row(now, names, ())
    return render(
        "runs.html",
        workspace=safe(name),
        served=served,
        script=Drawing(read_asset("list.js")),
        candidates=list(map(safe, short_names(names))),
        now=of_workspace
        | {
            "cost": f"total {cost_text(*spent, brief=True)}" if entries else "",
            "text": " · ".join(filter(None, (text, of_workspace["text"]))),
        },
        priced=simulated("") if is_simulated(spent[1]) else "",
        runs=[
            row
            | {
                "text": " · ".join(filter(None, (run.message, scope_text(run), row["text"]))),
                "cost": cost_text(run.cost, run.spending, brief=True),
            }
            for entry, each in zip(entries, listed, strict=True)
            for run, row in [(entry.run, run_row(each, names, entry.names))]
        ],
        notes=run_notes(listed),
        more=plural(total - len(entries), "older run") if total > len(entries) else "",
    )


def _read_workspace(location: Location) -> tuple[TrendRun, str]:
    """Return the results of the workspace as it is now, and what changed.

    The text says what is pending with its price, and what labels changed, or a problem.
    """
    now = TrendRun(WORKSPACE, 0, False, {}, Outcome(0, 0, ()))
    try:
        with open_revision(location, WORK) as project:
            compared = compare_workspace(location, project)
            rates = count_results(compared.side.results)
            lost = lost_labels_text(find_lost_labels(project)) if compared.diff else ""
            pending = sum(compared.side.results.missing)
            price = work_price_text(describe_workspace(project), brief=True) if pending else ""
    except EvalstoreError as error:
        return now, str(error)
    now, changed = now._replace(rates=rates), ""
    if diff := compared.diff:
        now = with_changes(now, diff)
        if labels := diff.count_causes()[LABELS]:
            changed = f"{LABELS} changed {plural(labels, 'result')}"
    texts = [f"{pending:,} pending: {price}" * bool(pending), changed, lost]
    return now, " · ".join(filter(None, texts))
