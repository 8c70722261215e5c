"""The command `tag`: gives names to runs, which `push` and `pull` copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core import clock
from evalstore.core.errors import RevisionError
from evalstore.files.fields import suggest
from evalstore.planning.open_project import open_store
from evalstore.store.revisions import RunTag, add_tag, read_tags, require_name, resolve_run
from evalstore.workspace.user_name import name_of_user

if TYPE_CHECKING:
    from evalstore.planning.options import Location


def list_tags(location: Location) -> list[RunTag]:
    """Return the names of runs."""
    with open_store(location) as store:
        return [*read_tags(store).values()]


def tag_run(location: Location, name: str, revision: str = "@") -> tuple[RunTag, RunTag | None]:
    """Give a name to a run; return also the run that had it. Raises `RevisionError`."""
    require_name(name)
    with open_store(location) as store:
        run = resolve_run(store, revision).id
        before = read_tags(store).get(name)
        at = max(clock.now(), before.at + 1 if before else 0)  # also if the clock was set back
        tag = RunTag(name, run, at, name_of_user(location.directory), is_removed=False)
        add_tag(store, tag)
        return tag, before


def untag(location: Location, name: str) -> list[RunTag]:
    """Remove a name; raises `RevisionError` if no run has it."""
    with open_store(location) as store:
        tags = read_tags(store)
        if name not in tags:
            raise RevisionError(f"no run is called '{name}'", hint=suggest(name, tags, "names"))
        at = max(clock.now(), tags[name].at + 1)
        tag = tags[name]._replace(at=at, by=name_of_user(location.directory), is_removed=True)
        add_tag(store, tag)
        return [tag]
