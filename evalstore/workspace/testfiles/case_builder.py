"""Builds cases: fills the texts of a test file with each row, and hashes and names the result."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from evalstore.checks.base import BLOCK
from evalstore.checks.parser import (
    Place,
    fill_in,
    find_kind,
    implied_checks,
    is_place_of_settings,
    plain_copy,
    read_check,
    split,
    templates_in,
    value_at,
)
from evalstore.checks.types import python
from evalstore.checks.types.expression import expression_names, keys_of
from evalstore.checks.types.judge import JUDGE, judge_of, without_judge
from evalstore.checks.types.python import code_of, require_defined
from evalstore.checks.types.text import matches_all
from evalstore.core import hashing
from evalstore.core.display import as_text
from evalstore.core.errors import FileProblem, LimitProblem, Problem, raise_all
from evalstore.core.values import (
    RECORDED,
    Case,
    EvaluationVersion,
    FileRef,
    Json,
    ModelVersion,
    TestVersion,
    is_text,
)
from evalstore.files.datasets import Dataset, DatasetRow
from evalstore.files.markdown_lines import Section
from evalstore.files.templates import ITEM, FileMention, NoValueError, Template
from evalstore.workspace.testfiles.context import FillContext
from evalstore.workspace.testfiles.parser import CheckEntry, TestFile
from evalstore.workspace.testfiles.replacements import labels, shorten_value
from evalstore.workspace.testfiles.template_filling import (
    ANSWERS,
    SAMPLE,
    AnswerNames,
    ConversationTemplate,
    RowValues,
    TemplateSet,
    clean_path,
    fill_instructions,
    find_answers,
)


class CaseDraft(NamedTuple):
    """The case of one row before it has a name."""

    values: dict[str, Json]
    """What tells the row from others: the values of its data that are used, and the author's."""
    id: str
    """Its value of the field `rowId`; empty without this field."""
    case: Case
    """Its label is empty."""
    group: str = ""
    group_checks: tuple[Json, ...] = ()


class _Judged(NamedTuple):
    """How the answers to a row are judged."""

    evaluation: str | None
    by: tuple[str, ...]
    prompts: tuple[str, ...]
    code: tuple[str, ...]
    group_checks: tuple[Json, ...]


class CaseBuilder:
    """Builds the cases of a test file from its compiled texts."""

    def __init__(
        self,
        test: TestFile,
        data: Dataset | None,
        tools: Sequence[str],
        schema: str | None,
        prompts: tuple[str | None, ...] = (),
    ) -> None:
        """`tools`, `schema` and `prompts` are ids of versions."""
        self._test, self._prompts = test, prompts
        names = {name for run in test.runs for name in (run.name, *run.turn_names) if name}
        self.filler = filler = TemplateSet(
            test.path,
            test.replacements,
            as_is=test.plain,
            runtime=False,
            data=data,
            answers=names,
            nameless=any(run.template for run in test.runs),
        )
        # In the instructions a column with the name of an answer is the column.
        self._later = (names | ({*ANSWERS, SAMPLE} - filler.data)) - filler.known.keys()
        self._conversations = [ConversationTemplate(run, filler) for run in test.runs]
        answer = test.answer
        self._answers = [
            filler.compile(section)
            for section in (answer if isinstance(answer, tuple) else (answer,))
            if section
        ]
        self._group = filler.compile(test.group) if test.group else None
        instructions = test.instructions
        self._instructions = filler.compile(instructions, self._later) if instructions else None
        texts = [text for each in self._conversations for text in each.texts]
        shown = filler.columns_in(filter(None, (*texts, self._instructions)))
        self._shown = shown if data is not None and data.is_table else {}
        self.blank: dict[str, tuple[str, int, DatasetRow]] = {}
        """Columns that texts show as they are: the name and line there, and the first empty row."""
        self._checks: list[_CheckTemplate] = []
        later = (JUDGED_NAMES | names) - filler.known.keys()
        for entry in test.checks.entries if test.checks else ():
            try:
                self._checks.append(_CheckTemplate(entry, filler, later))
            except FileProblem as problem:
                filler.problems.append(problem.at(filler.path))
        if test.row_id is not None:
            filler.require_row_id(test.row_id, test.line_of("rowId"))
        filler.finish(test.line_of, test.row_id)
        self._bare = TestVersion(
            messages=(),
            special_tags=tuple(tag for tag in test.tags if tag.startswith("_")),
            tools=tuple(tools),
            schema=schema,
            options=test.options,
        )
        self._described = hashing.describe_test(self._bare)
        calls_tools = tools or not {"_has_tools", "_tools_only"}.isdisjoint(test.tags)
        self._needs = (*["structured"] * bool(schema), *["tools"] * bool(calls_tools))
        """The capabilities that a test needs, apart from those of its messages."""
        self._tags = tuple(sorted(test.tags))
        self._implied = implied_checks(self._bare)
        self.has_groups = any(check.scope == "group" for check in self._checks)
        """Whether a check looks at all rows of a group."""
        self.group_differs = self._group is not None and bool(self._group.names)
        """Whether `group` depends on the row."""
        self.runs_code = any(check.type == python.NAME for check in self._checks)
        """Whether a check runs a Python file."""
        when = test.checks.when if test.checks else "on_pass"
        both = ("checks", "models") if when == "on_pass" else ("checks", "models", when)
        self._judged_by = {**_JUDGED_BY, (True, True): both}
        self._is_judged_alike = all(check.is_fixed for check in self._checks) and (
            self._instructions is None or self._instructions.is_fixed
        )
        self._judged: _Judged | None = None
        """How all rows are judged, if this does not depend on the row."""

    def draft(self, row: RowValues, project: FillContext) -> CaseDraft:
        """Draft the case of a row; keeps the contents of its versions, raises `FileProblem`."""
        tests: list[str] = []
        shapes: list[AnswerNames] = []
        needs = self._needs
        for conversation in self._conversations:
            messages, shape = conversation.fill(row, project)
            described = hashing.with_messages(self._described, messages)
            tests += [project.result.keep("test", described)] * conversation.run.count
            shapes += [shape] * conversation.run.count
            if shown := {
                _need_of_type(part.media_type)
                for message in messages
                for part in message.parts
                if isinstance(part, FileRef) and not is_text(part.media_type)
            }:
                needs = tuple(sorted({*needs, *shown}))
        judged = self._judged or self._judge(row, project, shapes)
        values, id, options = self.values(row), self.id_of(row), self._test.options
        case = Case(
            row="",
            key=hashing.row_key(values),
            tests=tuple(tests),
            evaluation=judged.evaluation,
            tags=self._tags,
            prompts=self._prompts,
            needs=needs,
            judged_by=judged.by,
            temperature=options.temperature,
            seed=options.seed,
            limit=options.max_output_tokens,
            recorded=self._recorded(row, shapes, project) if self._answers else None,
            judge_prompts=judged.prompts,
            code=judged.code,
        )
        group = "".join(map(str, self._group.fill(row.lookup, row.typed))) if self._group else ""
        return CaseDraft(values, id, case, group, judged.group_checks)

    def _judge(
        self, row: RowValues, project: FillContext, shapes: Sequence[AnswerNames]
    ) -> _Judged:
        """Return how the answers to a row are judged; the result is cached if it is fixed.

        Raises `FileProblem` with the problems of all checks.
        """
        instructions = (
            fill_instructions(self._instructions, row, project, shapes, self._later)
            if self._instructions
            else ()
        )
        own: list[Json] = []
        group: list[Json] = []
        problems: list[FileProblem] = []
        for template in self._checks:
            checks = group if template.scope == "group" else own
            try:
                checks.append(template.bound or template.bind_row(row, project, shapes))
            except LimitProblem:
                raise
            except FileProblem as problem:
                problems.append(problem)
        if problems:
            raise_all(problems)
        evaluation = EvaluationVersion(instructions, (*self._implied, *self._in_block(own)))
        judge = judge_of(evaluation.checks)
        by_checks, by_models = bool(without_judge(evaluation.checks)), bool(instructions or judge)
        judged = _Judged(
            project.result.keep("evaluation", hashing.describe_evaluation(evaluation))
            if by_checks or by_models
            else None,
            self._judged_by[by_checks, by_models],
            tuple(judge.get("prompts", ())) if judge else (),
            _code(evaluation.checks) if self.runs_code else (),
            self._in_block(group),
        )
        if self._is_judged_alike:
            self._judged = judged
        return judged

    def _in_block(self, checks: list[Json]) -> tuple[Json, ...]:
        """Return checks in canonical form, as one block if not all of them must pass."""
        rule = self._test.checks.rule if self._test.checks else "all"
        if rule == "all" or not checks:
            return tuple(checks)
        return ({"type": BLOCK, "revision": 1, "pass": rule, "checks": checks},)

    def note_blank(self, row: DatasetRow) -> None:
        """Note the columns that messages or instructions show, and that are empty in this row."""
        for column, (name, line) in self._shown.items():
            if not str(dict.get(row.item, column, column)).strip():
                self.blank.setdefault(column, (name, line, row))

    def values(self, row: RowValues) -> dict[str, Json]:
        """Return what tells rows apart: the used values of their data, and the author's."""
        values: dict[str, Json] = {}
        if row.item is not None:
            for name in self.filler.used_columns:
                if dict.__contains__(row.item, name):  # by the name itself, which is cheaper
                    values[name] = dict.__getitem__(row.item, name)
        for name, written in row.values.items():
            if name != self._test.row_id or self.filler.is_used(name):
                values[name] = written.text
        return values

    def id_of(self, row: RowValues) -> str:
        """Return the value of the field `rowId`; empty without this field. Raises `FileProblem`."""
        if (name := self._test.row_id) is None:
            return ""
        try:
            return "".join(map(str, row.lookup(name)))
        except NoValueError:
            message = f"this row has no '{name}', which 'rowId' names"
            hint = "give each row its own value"
            raise FileProblem(message, self._test.line_of("rowId"), hint=hint) from None

    @property
    def naming_order(self) -> Sequence[str]:
        """Return the names of all texts that rows may be named by, in their order."""
        written = (name for item in self._test.replacements for name in item)
        first = () if self._test.row_id is None else (self._test.row_id,)
        return [*dict.fromkeys([*first, *self.filler.used_columns, *written])]

    def texts_of(self, row: RowValues) -> dict[str, str]:
        """Return the texts that a row may be named by. Raises `FileProblem`."""
        return self.naming_texts(self.values(row), self.id_of(row))

    def naming_texts(self, values: Mapping[str, Json], id: str) -> dict[str, str]:
        """Return the texts that a row may be named by, in their order: its id comes first."""
        texts = {
            name: value if isinstance(value, str) else as_text(value)
            for name, value in values.items()
        }
        return texts if self._test.row_id is None else {self._test.row_id: id, **texts}

    def _recorded(
        self, row: RowValues, shapes: list[AnswerNames], project: FillContext
    ) -> str | None:
        """Return the model version of the recorded answers of a row; None when it has none.

        The version consists of the answers.
        """
        answers = [_value_or_none(answer, row) for answer in self._answers]
        if not isinstance(self._test.answer, tuple) and isinstance(answers[0], list):
            answers = answers[0]
        missing = [number for number, answer in enumerate(answers, 1) if answer is None]
        if answers and len(missing) == len(answers):
            return None
        if missing:
            raise FileProblem(
                f"'answer' has none for turn {missing[0]}, and some for others",
                self._test.line_of("answer"),
                hint="a row has all its answers or none",
            )
        if len(shapes) > 1:
            raise FileProblem(
                f"a recorded answer is for one conversation, and there are {len(shapes)}",
                self._test.line_of("answer"),
                hint="remove 'answer', or 'repetitions' and all conversations ('# ▶') but one",
            )
        if len(answers) != (turn_count := len(shapes[0].turns)):
            answer_count = "1 answer" if len(answers) == 1 else f"{len(answers)} answers"
            raise FileProblem(
                f"'answer' gives {answer_count}, and the conversation has {turn_count}",
                self._test.line_of("answer"),
                hint="it is a text or, for a conversation with several turns, a list",
            )
        if self.has_groups:
            raise FileProblem(
                "recorded answers cannot be judged as a group", self._test.line_of("answer")
            )
        version = ModelVersion(
            RECORDED, RECORDED, options={"answers": [as_text(answer) for answer in answers]}
        )
        return project.result.keep("model", hashing.describe_model(version))

    # --- names

    def name(self, drafts: Sequence[CaseDraft], project: FillContext) -> Iterator[Case]:
        """Yield the cases of the rows, followed by those of groups that are judged together."""
        texts = [self.naming_texts(draft.values, draft.id) for draft in drafts]
        groups: dict[str, list[CaseDraft]] = {}
        used_labels: set[str] = set()
        for label, draft in zip(labels(texts, self._test.row_id), drafts, strict=True):
            if self.has_groups:
                groups.setdefault(draft.group, []).append(draft)
                if draft.case.evaluation is None:
                    continue
            used_labels.add(label)
            yield draft.case._replace(row=label)
        for group, members in groups.items():
            name = shorten_value(group) or "''"
            label = f"all of {name}" if self._group else "all rows"
            if not used_labels and len(groups) == 1:
                label = ""
            while label in used_labels:
                label += "'"
            used_labels.add(label)
            key = hashing.row_key({"": group})  # no value of a row has an empty name
            yield self._together(members, project)._replace(row=label, key=key)

    def _together(self, members: Sequence[CaseDraft], project: FillContext) -> Case:
        """Combine the rows of a group to one case; rows with the same test share its answers."""
        cases = [member.case for member in members]
        counts: dict[str, int] = {}
        for case in cases:
            for test in case.tests:
                counts[test] = max(counts.get(test, 0), case.tests.count(test))
        evaluation = EvaluationVersion((), members[0].group_checks)
        return cases[0]._replace(
            tests=tuple(test for test, count in counts.items() for _ in range(count)),
            evaluation=project.result.keep("evaluation", hashing.describe_evaluation(evaluation)),
            judged_by=("checks",),
            needs=tuple(sorted({need for case in cases for need in case.needs})),
            judge_prompts=(),
            code=_code(evaluation.checks),
        )


def _value_or_none(template: Template, row: RowValues) -> Json:
    try:
        return template.value(row.lookup, row.typed)
    except NoValueError:
        return None


def _code(checks: Sequence[Json]) -> tuple[str, ...]:
    return tuple([file.text for file in code_of(checks)])


def differing_groups(drafts: Sequence[CaseDraft]) -> bool:
    """Return whether rows of one group have different group checks."""
    first: dict[str, tuple[Json, ...]] = {}
    return any(
        first.setdefault(draft.group, draft.group_checks) != draft.group_checks for draft in drafts
    )


_JUDGED_BY = {
    (False, False): ("models",),
    (False, True): ("models",),
    (True, False): ("checks",),
}
"""By whether there are checks and judging models; shared by all cases to save memory."""


def _need_of_type(media_type: str) -> str:
    if media_type == "application/pdf":
        return "pdf"
    kind = media_type.partition("/")[0]
    return kind if kind in ("image", "audio") else "file"


# --- fills the checks of a file with the values of a row


JUDGED_NAMES = frozenset({"sample", "answer", "answers"})
"""The names in the texts of checks that have a value only when there is an answer."""
OF_EXPRESSIONS = JUDGED_NAMES | {"json", "tool_calls"}
"""The same for expressions."""


class _CheckTemplate:
    """One check of a file with its texts compiled."""

    def __init__(self, entry: CheckEntry, filler: TemplateSet, later: frozenset[str]) -> None:
        """`later` are the names without a value before there is an answer; raises `FileProblem`."""
        self._definition, self._line = entry.definition, entry.line
        self._later = later
        texts = [
            (place, filler.compile(Section(text, (entry.line,), entry.line), later))
            for place, text in templates_in(entry.definition)
        ]
        self.type, settings = split(entry.definition, entry.line)
        scope = settings.get("scope", "answer")
        self.scope = scope if isinstance(scope, str) else ""
        if any(place in (("scope",), (self.type, "scope")) for place, _ in texts):
            raise FileProblem("'scope' cannot have placeholders", entry.line)
        self._texts = [text for text in texts if later.isdisjoint(text[1].names)]
        """The texts that the row fills, with their places in the check as it is written."""
        self._deferred = [text for text in texts if not later.isdisjoint(text[1].names)]
        """The texts that are filled when there is an answer."""
        self._columns = filler.used_columns
        """The columns of the data that the test file uses; complete when all texts are compiled."""
        names = () if texts or self.type != "expr" else self._need_names(filler)
        self.is_fixed = not (texts or names or self.type == python.NAME)
        """Whether it is the same for every row."""
        self.bound: dict[str, Json] | None = None
        """The check for every row, if it is fixed and has been read."""

    def _need_names(self, filler: TemplateSet) -> tuple[str, ...]:
        """Return the expression's names but those of the answer; problems go to `filler`."""
        expression = read_check(self._definition, self._line)["expression"]
        names = tuple(name for name in expression_names(expression) if name not in OF_EXPRESSIONS)
        for name in names:
            if name == ITEM and ITEM in filler.data:
                for used in _used_of_item(expression):
                    filler.need(used, self._line)
            else:
                filler.need(name, self._line, self._later)
        return names

    def bind_row(
        self, row: RowValues, project: FillContext, shapes: Sequence[AnswerNames]
    ) -> dict[str, Json]:
        """Bind the check to one row and its conversations; raises `FileProblem`."""
        is_code = self.type == python.NAME
        check = self._read(row, project) if is_code or not self._deferred else {}
        code = bind_code(check, self.scope, row, self._columns, shapes) if is_code else {}
        if self._deferred:
            check = self._defer(row)
        elif matches_all(check):
            message = (
                "a pattern of this check matches the empty text, so it is found in every answer"
            )
            hint = "say what must be there, as in '[0-9]+' instead of '[0-9]*'"
            where = project.path, message, self._line
            project.result.add_once([Problem(*where, severity="warning", hint=hint)])
        if self._deferred or code or "expression" in check:
            check = {**check, **code, **self._references(check, row, shapes)}
        if self.is_fixed:
            self.bound = check
        return check

    def _references(
        self, check: Mapping[str, Json], row: RowValues, shapes: Sequence[AnswerNames]
    ) -> dict[str, Json]:
        """Return the row's values and the places of named answers that the check needs later."""
        used, later_names = self._mentioned(check, row)
        try:
            values = _values(used, row)
        except NoValueError as problem:
            raise FileProblem(problem.message, self._line, hint=problem.hint) from problem
        turns = self._turns(later_names - JUDGED_NAMES, shapes)
        return {**({"values": values} if values else {}), **({"turns": turns} if turns else {})}

    def _read(self, row: RowValues, project: FillContext) -> dict[str, Json]:
        """Read the check with the values of a row, in canonical form.

        The ids of schemas, files and prompts are replaced with their versions.
        """
        written = self._definition
        if self._texts:
            written = fill_in(written, _values_of(self._texts, row))
        check = read_check(written, self._line)
        if isinstance(check.get("schema"), str):
            check["schema"] = project.find_schema(check["schema"], self._line)
        if self.type == python.NAME:
            written = clean_path(FileMention(check["file"], self._line))
            try:
                version, id = project.read_file(written)
            except FileProblem as problem:
                raise FileProblem(problem.message, self._line, hint=problem.hint) from problem
            require_defined(check, version.data, self._line)  # it is not run
            check["file"] = {"id": id, "path": written}
        if self.type == JUDGE and "prompt" in check:
            check["prompts"] = list(project.find_prompts(check.pop("prompt"), self._line))
        return check

    def _defer(self, row: RowValues) -> dict[str, Json]:
        """Return the stored form of a check that mentions the answer, with the values of a row."""
        kind = find_kind(self.type)
        assert kind is not None
        values = _values_of(self._texts, row)
        if kind.by_models:
            name = min(
                name for _, text in self._deferred for name in text.names.keys() & self._later
            )
            raise FileProblem(
                f"the check '{self.type}' mentions the answer ('{name}')",
                self._line,
                hint="the prompt of a judge shows it",
            )
        places = (place for place, _ in self._deferred)
        data = [list(p) for p, v in values if isinstance(v, dict) and is_place_of_settings(p)]
        return {
            "type": self.type,
            "revision": kind.revision,
            "given": plain_copy(fill_in(self._definition, values)),
            "templates": [[list(place), value_at(self._definition, place)] for place in places],
            **({"data": data} if data else {}),
            **({} if self.scope == "answer" else {"scope": self.scope}),
        }

    def _mentioned(
        self, check: Mapping[str, Json], row: RowValues
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Split the names that the check needs later: those with a value of the row, and others."""
        if self._deferred:
            mentioned = frozenset(name for _, text in self._deferred for name in text.names)
            return mentioned - self._later, mentioned & self._later
        names = frozenset(expression_names(check["expression"]) if "expression" in check else ())
        used = names - self._later - OF_EXPRESSIONS - {ITEM}
        if ITEM in names:
            used |= _used_of_item(check["expression"]) if row.item is not None else {ITEM}
        return used, names & self._later

    def _turns(self, names: Collection[str], shapes: Sequence[AnswerNames]) -> dict[str, Json]:
        """Return the places of these answers: the number of a turn, or pairs with a session."""
        turns_by_name: dict[str, Json] = {}
        several = len(shapes) > 1
        for name in sorted(names):
            places = [list(place) for place in find_answers(name, shapes)]
            if self.scope == "answer" and several:
                turns = {shape.turns for shape in shapes}
                if len(turns) > 1 or not places or any(shape.run == name for shape in shapes):
                    raise FileProblem(
                        f"'{name}' is one of several conversations, but this check sees only one",
                        self._line,
                        hint="write 'scope: case' to check all of them together",
                    )
            if not places or self.scope == "group":
                raise FileProblem(f"'{name}' is not known in the scope '{self.scope}'", self._line)
            turns_by_name[name] = places if several and self.scope == "case" else places[0][1]
        return turns_by_name


def _values_of(texts: Sequence[tuple[Place, Template]], row: RowValues) -> list[tuple[Place, Json]]:
    return [(place, template.value(row.lookup, row.typed)) for place, template in texts]


def _used_of_item(expression: str) -> frozenset[str]:
    keys, whole = keys_of(expression, ITEM)
    return frozenset({ITEM} if whole else (f"{ITEM}.{key}" for key in keys))


def _values(names: Collection[str], row: RowValues) -> dict[str, Json]:
    """Return the values of a row by name; of a row of data, those that are used."""
    values: dict[str, Json] = {}
    for name in sorted(names):
        if row.item is None or name in row.values or not name.startswith(ITEM):
            values[name] = row.typed(name)
        elif name == ITEM:
            values[ITEM] = {**row.item, **values.get(ITEM, {})}
        elif (key := name.removeprefix(f"{ITEM}.")) in row.item:
            values.setdefault(ITEM, {})[key] = row.item[key]
        elif name in row.item:  # a column such as `items`
            values[name] = row.item[name]
        else:
            values.setdefault(ITEM, {})
    return values


# --- adds the file and the values of the row to a check that runs a Python file


def bind_code(
    check: Mapping[str, Json],
    scope: str,
    row: RowValues,
    columns: Collection[str],
    shapes: Sequence[AnswerNames],
) -> dict[str, Json]:
    """Bind the file to the values of the row and the names of the answers.

    Only the columns of the data that the test file uses are included.
    """
    bound: dict[str, Json] = {"file": check["file"]}
    if check.get("network"):
        bound["network"] = True
    if scope == "group":
        return bound
    data = row.item if row.item is not None else {}
    item = {name: data[name] for name in columns if name in data}
    for name in row.values:
        if not any(isinstance(piece, FileMention) for piece in row.lookup(name)):
            item[name] = row.typed(name)
    if item:
        bound["item"] = item
    named: list[Json] = [{"run": shape.run, "turns": list(shape.turns)} for shape in shapes]
    if scope == "answer":
        turns = {shape.turns for shape in shapes}
        named = [{"turns": list(*turns)}] if len(turns) == 1 else []
    named = [
        {name: value for name, value in conversation.items() if value not in (None, [])}
        for conversation in named
    ]
    if named and named != [{"turns": ["response"]}]:
        bound["conversations"] = named
    return bound
