"""Models by a part of their names, and hints on names of models and tags that there are not.

Names of test files and of rows are looked up in `path_targets`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import islice

from evalstore.core.errors import EvalstoreError, NothingSelectedError
from evalstore.core.values import CaseFile
from evalstore.files.fields import nearest, suggest
from evalstore.workspace.reader import Reading
from evalstore.workspace.settings.model_suggestions import NO_FILE, suggest_model
from evalstore.workspace.settings.settings import Settings

_MOST_CASES = 10_000
_WORD = re.compile(r"\w+")


def no_such_model(
    id: str, part: str, reading: Reading, settings: Settings | None = None
) -> EvalstoreError:
    """Return the error for an unknown model; `part` is `candidates`, `evaluators` or another place.

    A candidate is never suggested for an evaluator that the settings name, nor the reverse, and no
    name that is only in the settings for itself. What is hardly a name may be the message of a run,
    which git has `-m` for.
    """
    models = {*_models_for(part, reading, settings)} - {id} if reading.models else ()
    hint = suggest_model(id, models, reading.providers)
    if any(problem.file not in reading.tests for problem in reading.errors):
        hint = "its file may have errors: 'evalstore check' lists them"
    if part == "candidates" and (" " in id or hint.endswith(NO_FILE)):
        hint += "; the message of a run is '--message'"
    return EvalstoreError(f"unknown model '{id}' ({part})", hint=hint)


def matches_any(text: str, values: Iterable[str]) -> bool:
    """Return whether a value matches: as a part of the text, or behind `=` as the whole."""
    return any(
        value[1:] == text if value.startswith("=") and len(value) > 1 else value in text
        for value in values
    )


def match_models(name: str, known: Iterable[str]) -> list[str]:
    """Return the model of this name, or else all that have it in theirs, in upper or lower case."""
    models, parts = list(dict.fromkeys(known)), [name.casefold()]
    return [name] if name in models else [id for id in models if matches_any(id.casefold(), parts)]


def match_one_model(name: str, known: Iterable[str]) -> str:
    """Return the model that a name, or a part of a name, means; the name itself if there is none.

    Raises `EvalstoreError` if it may mean several.
    """
    found = match_models(name, known)
    if len(found) > 1:
        error = f"'{name}' is part of the names of {len(found)} models"
        raise EvalstoreError(error, hint=f"name one: {', '.join(found)}")
    return found[0] if found else name


def _models_for(part: str, reading: Reading, settings: Settings | None) -> Collection[str]:
    """Return the models that may have this part: those of the settings, or without another."""
    if settings is None or part not in ("candidates", "evaluators"):
        return reading.models
    candidates = {name for each in settings.candidates for name in (each.id, each.name) if name}
    evaluators = {each.id for each in settings.evaluators}
    own, others = (candidates, evaluators) if part == "candidates" else (evaluators, candidates)
    return own | {id for id in reading.models if id not in others}


def tags_of(files: Iterable[CaseFile]) -> set[str]:
    """Return the tags of all cases."""
    return {tag for file in files for case in file.cases for tag in case.tags}


def require_tag(tags: Iterable[str], known: Collection[str]) -> None:
    """Raise `NothingSelectedError` for the first of these tags that no case has."""
    for tag in tags:
        if tag not in known:
            hint = suggest(tag, known, "tags")
            raise NothingSelectedError(f"no case has the tag '{tag}'", hint=hint)


def unknown_tags(tags: Iterable[str], known: Collection[str]) -> list[str]:
    """Return a warning about each of these tags that no case has."""
    return [
        f"no case has the tag '{tag}'" + (f": {hint}" if (hint := nearest(tag, known)) else "")
        for tag in tags
        if tag not in known
    ]


def suggest_word(expression: str, files: Mapping[str, CaseFile]) -> str | None:
    """Suggest the nearest word for the first of `-k` that no file or row has; None without one.

    Of many cases only the first are read.
    """
    cases = ((path, case.row) for path, file in files.items() for case in file.cases)
    places = [f"{path}::{row}".casefold() for path, row in islice(cases, _MOST_CASES)]
    known = {word for place in places for word in _WORD.findall(place)}
    for word in _WORD.findall(expression.casefold()):
        if word not in ("and", "or", "not") and not any(word in place for place in places):
            return nearest(word, known)
    return None
