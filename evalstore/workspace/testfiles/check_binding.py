"""Checks of a file to checks of a case: texts filled with a row, or kept until there is an answer.

A text that mentions the answer is filled when the answer is judged. Until then it is kept as
it is written, with the values of the row that it uses: both decide what is checked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from evalstore.checks.base import BLOCK
from evalstore.checks.expressions.check import keys_of, names_in
from evalstore.checks.parser import COMMON, Form, read_check, split
from evalstore.checks.placeholders import Place, copied, put_at, set_apart, templates_in, value_at
from evalstore.checks.registry import find_kind
from evalstore.checks.types import python
from evalstore.checks.types.judge import JUDGE
from evalstore.checks.types.regex import matches_all
from evalstore.errors import FileProblem, Problem
from evalstore.files.markdown import Section
from evalstore.files.templates import ITEM, NoValueError
from evalstore.values import Json
from evalstore.workspace.testfiles.code_binding import bind, find_file
from evalstore.workspace.testfiles.messages import find_answers

if TYPE_CHECKING:
    from evalstore.files.templates import Template
    from evalstore.workspace.testfiles.check_block import CheckEntry, CheckList
    from evalstore.workspace.testfiles.context import FillContext
    from evalstore.workspace.testfiles.messages import AnswerNames
    from evalstore.workspace.testfiles.rendering import RowValues, TemplateSet

JUDGED_NAMES = frozenset({"sample", "answer", "answers"})
"""What a text in a check may mention that is known only when there is an answer."""
OF_EXPRESSIONS = JUDGED_NAMES | {"json", "tool_calls"}
"""What an expression may mention likewise."""


class BoundChecks(NamedTuple):
    """The checks of one row in canonical form."""

    own: tuple[Json, ...] = ()
    """Those that look at the answers of the row."""
    group: tuple[Json, ...] = ()
    """Those that look at the answers of all rows of its group."""


@dataclass(frozen=True, slots=True)
class _Entry:
    entry: CheckEntry
    type: str
    scope: str
    texts: tuple[tuple[Place, Template], ...]
    """Those that are filled with the row."""
    kept: tuple[tuple[Place, Template], ...]
    """Those that are filled when there is an answer."""
    later: frozenset[str]
    """Names that have no value before there is an answer."""
    names: tuple[str, ...]
    """What its expression takes from outside, the answer aside."""
    columns: Mapping[str, None]
    """The columns of the data that the test file uses; complete when all texts are compiled."""


class CheckTemplates:
    """The checks of a file with their texts compiled."""

    def __init__(self, checks: CheckList, filler: TemplateSet, named: Collection[str]) -> None:
        """`named` are the names of the answers and of the runs of the file."""
        self._checks = checks
        self._fixed: dict[int, dict[str, Json]] = {}
        """Checks in which nothing is filled, by number: they are read once."""
        self._forms: dict[int, _Form | None] = {}
        """Checks of which only a few texts are filled: the rest is read once."""
        later = (JUDGED_NAMES | set(named)) - filler.known.keys()
        self._entries: list[_Entry] = []
        for entry in checks.entries:
            try:
                self._entries.append(self._compile(entry, filler, later))
            except FileProblem as problem:
                filler.problems.append(problem.at(filler.path))
        self.has_group = any(entry.scope == "group" for entry in self._entries)
        """Whether a check looks at all rows of a group."""
        self.runs_code = any(entry.type == python.NAME for entry in self._entries)
        """Whether a check runs a Python file."""
        self.are_fixed = all(map(_is_fixed, self._entries))
        """Whether they are the same for every row."""

    @staticmethod
    def _compile(entry: CheckEntry, filler: TemplateSet, later: frozenset[str]) -> _Entry:
        texts = [
            (place, filler.compile(Section(text, (entry.line,), entry.line), later))
            for place, text in templates_in(entry.given, ())
        ]
        name, settings = split(entry.given, entry.line)
        if any(place in (("scope",), (name, "scope")) for place, _ in texts):
            raise FileProblem("'scope' cannot be filled in", entry.line)
        names: tuple[str, ...] = ()
        if name == "expr" and not texts:
            found = read_check(entry.given, entry.line)["expression"]
            names = tuple(one for one in names_in(found) if one not in OF_EXPRESSIONS)
            for one in names:
                if one == ITEM and ITEM in filler.data:
                    for used in _used_of_item(found):
                        filler.need(used, entry.line)
                else:
                    filler.need(one, entry.line, later)
        scope = settings.get("scope", "answer")
        return _Entry(
            entry,
            name,
            scope if isinstance(scope, str) else "",
            tuple(one for one in texts if later.isdisjoint(one[1].names)),
            tuple(one for one in texts if not later.isdisjoint(one[1].names)),
            later,
            names,
            filler.used_columns,
        )

    def fill(
        self, row: RowValues, project: FillContext, shapes: Sequence[AnswerNames]
    ) -> BoundChecks:
        """The checks for a row and its conversations; raises `FileProblem`."""
        own: list[Json] = []
        group: list[Json] = []
        for number, entry in enumerate(self._entries):
            (group if entry.scope == "group" else own).append(
                self._fill(number, entry, row, project, shapes)
            )
        return BoundChecks(self._together(own), self._together(group))

    def _together(self, checks: list[Json]) -> tuple[Json, ...]:
        if self._checks.rule == "all" or not checks:
            return tuple(checks)
        return ({"type": BLOCK, "revision": 1, "pass": self._checks.rule, "checks": checks},)

    def _fill(
        self,
        number: int,
        entry: _Entry,
        row: RowValues,
        project: FillContext,
        shapes: Sequence[AnswerNames],
    ) -> dict[str, Json]:
        if not _is_fixed(entry):
            if form := self._forms.get(number):
                return form.fill(row, project)
            found = _fill(entry, row, project, shapes)
            if number not in self._forms:
                self._forms[number] = _form_of(entry, found)
            return found
        if number not in self._fixed:
            self._fixed[number] = _fill(entry, row, project, shapes)
        return self._fixed[number]


def _is_fixed(entry: _Entry) -> bool:
    """Whether a check is the same for every row."""
    varies = entry.texts or entry.kept or entry.names
    return not varies and entry.type != python.NAME


class _Form:
    """A check whose own settings are filled with the row, and nothing else of it."""

    def __init__(self, entry: _Entry, form: Form, texts: Sequence[tuple[Place, Template]]) -> None:
        self._entry, self._form, self._texts = entry, form, texts
        self._is_deep = any(len(place) > 1 for place, _ in texts)

    def fill(self, row: RowValues, project: FillContext) -> dict[str, Json]:
        """The check for a row."""
        settings = copied(self._form.settings) if self._is_deep else {**self._form.settings}
        for place, template in self._texts:
            value = template.value(row.lookup, row.typed)
            if len(place) == 1:
                settings[place[0]] = value
            else:
                settings = put_at(settings, place, value)
        found = self._form.read(settings)
        if matches_all(found):
            project.result.add_once([_matching_all(project.path, self._entry.entry)])
        return found


def _form_of(entry: _Entry, found: Mapping[str, Json]) -> _Form | None:
    """The check to be read again with the next row; None when more than its texts may differ."""
    kind = find_kind(entry.type)
    assert kind is not None
    if entry.kept or entry.names or kind.by_models or entry.type == python.NAME:
        return None
    if "expression" in found or "schema" in found:
        return None
    _, settings = split(entry.entry.given, entry.entry.line)
    places = dict(templates_in(settings, ()))
    if any(place[0] in (*COMMON, "allowEmpty") for place in places):
        return None
    form = Form(entry.entry.given, entry.entry.line)
    compiled = {value_at(entry.entry.given, place): template for place, template in entry.texts}
    return _Form(entry, form, [(place, compiled[text]) for place, text in places.items()])


def _name_prompts(check: dict[str, Json], line: int, project: FillContext) -> dict[str, Json]:
    """The check with the versions of the prompt that it names, instead of its id."""
    if check["type"] != JUDGE or "prompt" not in check:
        return check
    named = {name: value for name, value in check.items() if name != "prompt"}
    return {**named, "prompts": list(project.find_prompts(check["prompt"], line))}


def _fill(
    entry: _Entry, row: RowValues, project: FillContext, shapes: Sequence[AnswerNames]
) -> dict[str, Json]:
    line = entry.entry.line
    given = copied(entry.entry.given)
    for place, template in entry.texts:
        given = put_at(given, place, template.value(row.lookup, row.typed))
    mentioned = {name for _, template in entry.kept for name in template.names}
    used, asked = mentioned - entry.later, mentioned & entry.later
    code: dict[str, Json] = {}
    if entry.type == python.NAME:
        whole = read_check(
            set_apart(given, entry.entry.given),
            line,
            find_file=lambda own: find_file(project, own, line),
        )
        code = bind(whole, entry.scope, row, entry.columns, shapes)
    if entry.kept:
        kind = find_kind(entry.type)
        assert kind is not None
        if kind.by_models:
            raise FileProblem(
                f"the check '{entry.type}' mentions the answer ('{min(asked)}')",
                line,
                hint="models are shown it by their prompt",
            )
        templates = [[list(place), value_at(entry.entry.given, place)] for place, _ in entry.kept]
        found = {
            "type": entry.type,
            "revision": kind.revision,
            "given": given,
            "templates": templates,
        }
        if entry.scope != "answer":
            found["scope"] = entry.scope
    else:
        found = _name_prompts(
            read_check(
                set_apart(given, entry.entry.given), line, lambda id: project.find_schema(id, line)
            ),
            line,
            project,
        )
        if "expression" in found:
            names = names_in(found["expression"])
            asked |= {name for name in names if name in entry.later}
            used |= {name for name in names if name not in entry.later | OF_EXPRESSIONS | {ITEM}}
            if ITEM in names:
                used |= _used_of_item(found["expression"]) if row.item is not None else {ITEM}
        if matches_all(found):
            project.result.add_once([_matching_all(project.path, entry.entry)])
    try:
        values = _values(used, row)
    except NoValueError as problem:
        raise FileProblem(problem.message, line, hint=problem.hint) from problem
    turns = _turns(asked - JUDGED_NAMES, entry, shapes)
    return {
        **found,
        **code,
        **({"values": values} if values else {}),
        **({"turns": turns} if turns else {}),
    }


def _matching_all(path: str, entry: CheckEntry) -> Problem:
    return Problem(
        path,
        "a pattern of this check matches the empty text, so it is found in every answer",
        entry.line,
        severity="warning",
        hint="say what must be there, as in '[0-9]+' instead of '[0-9]*'",
    )


def _used_of_item(expression: str) -> set[str]:
    keys, whole = keys_of(expression, ITEM)
    return {ITEM} if whole else {f"{ITEM}.{key}" for key in keys}


def _values(names: Collection[str], row: RowValues) -> dict[str, Json]:
    """The values of a row by name; of a row of data, those that are used."""
    found: dict[str, Json] = {}
    for name in sorted(names):
        if row.item is None or name in row.values or not name.startswith(ITEM):
            found[name] = row.typed(name)
        elif name == ITEM:
            found[ITEM] = {**row.item, **found.get(ITEM, {})}
        elif (key := name.removeprefix(f"{ITEM}.")) in row.item:
            found.setdefault(ITEM, {})[key] = row.item[key]
        elif name in row.item:  # a column such as `items`
            found[name] = row.item[name]
        else:
            found.setdefault(ITEM, {})
    return found


def _turns(names: Collection[str], entry: _Entry, shapes: Sequence[AnswerNames]) -> dict[str, Json]:
    """Where the answers of these names are: the number of a turn, or pairs with a session."""
    found: dict[str, Json] = {}
    several = len(shapes) > 1
    for name in sorted(names):
        places = [list(place) for place in find_answers(name, shapes)]
        if entry.scope == "answer" and several:
            turns = {shape.turns for shape in shapes}
            if len(turns) > 1 or not places or any(shape.run == name for shape in shapes):
                raise FileProblem(
                    f"'{name}' is one of several conversations, and this check sees one at a time",
                    entry.entry.line,
                    hint="write 'scope: case' to check all of them together",
                )
        if not places or entry.scope == "group":
            raise FileProblem(
                f"'{name}' means nothing in the scope '{entry.scope}'", entry.entry.line
            )
        found[name] = places if several and entry.scope == "case" else places[0][1]
    return found
