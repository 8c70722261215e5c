"""Builds cases: fills the texts of a test file with each row, and hashes and names the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.checks import implied_checks
from evalstore.checks.types.judge import judge_of, without_judge
from evalstore.checks.types.python import code_of
from evalstore.core import hashing
from evalstore.core.display import as_text
from evalstore.core.errors import FileProblem
from evalstore.core.values import (
    RECORDED,
    Case,
    EvaluationVersion,
    FileRef,
    Json,
    Message,
    ModelVersion,
    TestVersion,
    is_text,
)
from evalstore.files.templates import NoValueError
from evalstore.workspace.testfiles.check_binding import BoundChecks, CheckTemplates
from evalstore.workspace.testfiles.messages import (
    ANSWERS,
    SAMPLE,
    AnswerNames,
    ConversationTemplate,
    fill_instructions,
)
from evalstore.workspace.testfiles.rendering import RowValues, TemplateSet
from evalstore.workspace.testfiles.replacements import labels, shorten_value

if TYPE_CHECKING:
    from evalstore.files.datasets import Dataset
    from evalstore.files.templates import Template
    from evalstore.workspace.testfiles.context import FillContext
    from evalstore.workspace.testfiles.parser import TestFile


class CaseDraft(NamedTuple):
    """The case of one row before it has a name."""

    values: dict[str, Json]
    """What tells the row from others: the values of its data that are used, and the author's."""
    id: str
    """Its value of the field `rowId`; empty without this field."""
    tests: tuple[str, ...]
    evaluation: str | None
    judged_by: tuple[str, ...]
    needs: tuple[str, ...]
    recorded: str | None
    judge_prompts: tuple[str, ...]
    code: tuple[str, ...]
    group: str
    group_checks: tuple[Json, ...]


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
        self, test: TestFile, data: Dataset | None, tools: Sequence[str], schema: str | None
    ) -> None:
        """`tools` and `schema` are ids of versions."""
        self._test = test
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
        self._checks = CheckTemplates(test.checks, filler, names) if test.checks else None
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
        self._needs = _needs_of_test(self._bare)
        self._tags = tuple(sorted(test.tags))
        self._implied = implied_checks(self._bare)
        self.has_groups = self._checks is not None and self._checks.has_group
        """Whether a check looks at all rows of a group."""
        self.group_differs = self._group is not None and bool(self._group.names)
        """Whether `group` depends on the row."""
        self._runs_code = self._checks is not None and self._checks.runs_code
        when = test.checks.when if test.checks else "on_pass"
        both = ("checks", "models") if when == "on_pass" else ("checks", "models", when)
        self._judged_by = {**_JUDGED_BY, (True, True): both}
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
            if shown := _needs_of_messages(messages):
                needs = tuple(sorted({*needs, *shown}))
        judged = self._judged or self._judge(row, project, shapes)
        return CaseDraft(
            self.values(row),
            self.id_of(row),
            tuple(tests),
            judged.evaluation,
            judged.by,
            needs,
            self._recorded(row, shapes, project) if self._answers else None,
            judged.prompts,
            judged.code,
            "".join(map(str, self._group.fill(row.lookup, row.typed))) if self._group else "",
            judged.group_checks,
        )

    def _judge(
        self, row: RowValues, project: FillContext, shapes: Sequence[AnswerNames]
    ) -> _Judged:
        """Return how the answers to a row are judged; the result is cached if it is fixed."""
        instructions = (
            fill_instructions(self._instructions, row, project, shapes, self._later)
            if self._instructions
            else ()
        )
        checks = self._checks.fill(row, project, shapes) if self._checks else BoundChecks()
        evaluation = EvaluationVersion(instructions, (*self._implied, *checks.own))
        judge = judge_of(evaluation.checks)
        by_checks, by_models = bool(without_judge(evaluation.checks)), bool(instructions or judge)
        judged = _Judged(
            project.result.keep("evaluation", hashing.describe_evaluation(evaluation))
            if by_checks or by_models
            else None,
            self._judged_by[by_checks, by_models],
            tuple(judge.get("prompts", ())) if judge else (),
            _code(evaluation.checks) if self._runs_code else (),
            checks.group,
        )
        if (self._instructions is None or self._instructions.is_fixed) and (
            self._checks is None or self._checks.are_fixed
        ):
            self._judged = judged
        return judged

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
            hint = "give each row a value of its own"
            raise FileProblem(message, self._test.line_of("rowId"), hint=hint) from None

    def naming_texts(self, values: Mapping[str, Json], id: str) -> dict[str, str]:
        """Return the texts that a row may be named by, in their order: its id comes first."""
        texts = texts_of_row(values)
        return texts if self._test.row_id is None else {self._test.row_id: id, **texts}

    def _recorded(
        self, row: RowValues, shapes: list[AnswerNames], project: FillContext
    ) -> str | None:
        """Return the model version of the recorded answers of a row; None when it has none.

        The version consists of the answers.
        """
        line = self._test.line_of("answer")
        answers = [_value_or_none(answer, row) for answer in self._answers]
        if not isinstance(self._test.answer, tuple) and isinstance(answers[0], list):
            answers = answers[0]
        missing = [number for number, answer in enumerate(answers, 1) if answer is None]
        if answers and len(missing) == len(answers):
            return None
        if missing:
            raise FileProblem(
                f"'answer' has none for turn {missing[0]}, and some for others",
                line,
                hint="a row brings all its answers or none",
            )
        if len(shapes) > 1:
            raise FileProblem(
                f"a recorded answer is for one conversation, and there are {len(shapes)}",
                line,
                hint="remove 'answer', or 'repetitions' and all conversations ('# ▶') but one",
            )
        if len(answers) != (turn_count := len(shapes[0].turns)):
            answer_count = "1 answer" if len(answers) == 1 else f"{len(answers)} answers"
            raise FileProblem(
                f"'answer' gives {answer_count}, and the conversation has {turn_count}",
                line,
                hint="it is a text or, for a conversation with several turns, a list",
            )
        if self.has_groups:
            raise FileProblem("recorded answers cannot be judged as a group", line)
        version = ModelVersion(
            RECORDED, RECORDED, options={"answers": [as_text(answer) for answer in answers]}
        )
        return project.result.keep("model", hashing.describe_model(version))

    # --- names

    def name(
        self, drafts: Sequence[CaseDraft], prompts: tuple[str | None, ...], project: FillContext
    ) -> Iterator[Case]:
        """Yield the cases of the rows, followed by those of groups that are judged together."""
        texts = [self.naming_texts(draft.values, draft.id) for draft in drafts]
        groups: dict[str, list[CaseDraft]] = {}
        used_labels: set[str] = set()
        for label, row_draft in zip(labels(texts, self._test.row_id), drafts, strict=True):
            if self.has_groups:
                groups.setdefault(row_draft.group, []).append(row_draft)
                if row_draft.evaluation is None:
                    continue
            used_labels.add(label)
            yield self.case(label, hashing.row_key(row_draft.values), row_draft, prompts)
        for group, members in groups.items():
            name = shorten_value(group) or "''"
            label = f"all of {name}" if self._group else "all rows"
            if not used_labels and len(groups) == 1:
                label = ""
            while label in used_labels:
                label += "'"
            used_labels.add(label)
            key = hashing.row_key({"": group})  # no value of a row has an empty name
            yield self.case(label, key, self._together(members, project), prompts)

    def case(self, label: str, key: str, draft: CaseDraft, prompts: tuple[str | None, ...]) -> Case:
        """Return the case of a row."""
        options = self._test.options
        return Case(
            row=label,
            key=key,
            tests=draft.tests,
            evaluation=draft.evaluation,
            tags=self._tags,
            prompts=prompts,
            needs=draft.needs,
            judged_by=draft.judged_by,
            temperature=options.temperature,
            seed=options.seed,
            limit=options.max_output_tokens,
            recorded=draft.recorded,
            judge_prompts=draft.judge_prompts,
            code=draft.code,
        )

    def _together(self, members: Sequence[CaseDraft], project: FillContext) -> CaseDraft:
        """Combine the rows of a group to one draft; rows with the same test share its answers."""
        counts: dict[str, int] = {}
        for member in members:
            for test in member.tests:
                counts[test] = max(counts.get(test, 0), member.tests.count(test))
        evaluation = EvaluationVersion((), members[0].group_checks)
        return members[0]._replace(
            tests=tuple(test for test, count in counts.items() for _ in range(count)),
            evaluation=project.result.keep("evaluation", hashing.describe_evaluation(evaluation)),
            judged_by=("checks",),
            needs=tuple(sorted({need for member in members for need in member.needs})),
            judge_prompts=(),
            code=_code(evaluation.checks),
        )


def texts_of_row(values: Mapping[str, Json]) -> dict[str, str]:
    """Convert the values of a row to texts."""
    return {
        name: value if isinstance(value, str) else as_text(value) for name, value in values.items()
    }


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


def _needs_of_test(version: TestVersion) -> tuple[str, ...]:
    """Return the capabilities that a test needs, apart from those of its messages."""
    needs = []
    if version.schema:
        needs.append("structured")
    if version.tools or {"_has_tools", "_tools_only"} & set(version.special_tags):
        needs.append("tools")
    return tuple(needs)


def _needs_of_messages(messages: Iterable[Message]) -> set[str]:
    """Return the capabilities that messages need."""
    return {
        _need_of_type(part.media_type)
        for message in messages
        for part in message.parts
        if isinstance(part, FileRef) and not is_text(part.media_type)
    }


def _need_of_type(media_type: str) -> str:
    if media_type == "application/pdf":
        return "pdf"
    kind = media_type.partition("/")[0]
    return kind if kind in ("image", "audio") else "file"
