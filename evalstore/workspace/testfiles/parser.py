"""Parses test and prompt files, before their texts are filled.

The text is split into messages and instructions, and into turns, before templates are filled,
so data cannot change the structure. Other files are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches

from evalstore.checks.parser import fill_in, places_as_written, read_check, split, templates_in
from evalstore.checks.types.judge import JUDGE
from evalstore.core.errors import FileProblem, raise_all
from evalstore.core.values import Json, Options
from evalstore.files.datasets import DatasetSpec, read_spec
from evalstore.files.fields import MOST_SAMPLES, Collector, Fields, is_finite, nearest
from evalstore.files.markdown_lines import (
    SPACE,
    Section,
    SourceLine,
    cut,
    fences,
    scan_lines,
    section,
)
from evalstore.files.yaml12 import HEADING, Document, read_yaml, split_frontmatter
from evalstore.workspace.folder import default_id
from evalstore.workspace.testfiles.conversations import (
    RepeatedConversation,
    Turn,
    check_order,
    doubtful_headings,
    headings_of_prompt,
    may_have_words,
    misspelt_headings,
    only_system,
    read_messages_field,
    read_runs,
    rules_of_last_message,
    split_turns,
    with_emoji,
)
from evalstore.workspace.testfiles.replacements import Replacements, read_replacements

WORD = "checks"
"""The first word after the opening fence."""
BLOCK_FIELDS = ("evaluator", "pass", WORD)
WHEN = ("on_pass", "on_fail", "always")
_NEAR = 0.75
"""How alike a word must be to count as a misspelling, 0..1: `check` and `chekcs`, not `css`."""
_RULE = re.compile(r">=\s*([0-9.]+)\Z")


@dataclass(frozen=True, slots=True)
class CheckEntry:
    """One check as it is written."""

    definition: Json
    line: int


@dataclass(frozen=True, slots=True)
class CheckList:
    """The checks of a file."""

    entries: tuple[CheckEntry, ...]
    rule: str = "all"
    """`all`, `any`, or `>= t` of the mean score."""
    when: str = "on_pass"
    """When models judge after the checks: `on_pass`, `on_fail` or `always`."""
    line: int = 1
    judge: CheckEntry | None = None
    """The check `judge`."""

    def require_criteria(self) -> None:
        """Raise when models judge without a prompt and without instructions."""
        if self.judge and not split(self.judge.definition, self.judge.line)[1].get("prompt"):
            raise FileProblem(
                "nothing says what models should judge by",
                self.judge.line,
                hint="name a judge prompt ('prompt'), or write instructions beside the block",
            )


def take_block(lines: list[SourceLine]) -> tuple[list[SourceLine], CheckList | None]:
    """Return the lines without the block, and the checks in it; raises `FileProblem`."""
    blocks = [fence for fence in fences(lines) if fence.info.split()[:1] == [WORD]]
    if not blocks:
        return lines, None
    if len(blocks) > 1:
        raise FileProblem(f"a second block '{WORD}'", blocks[1].opened)
    opened = blocks[0].opened
    if not blocks[0].closed:
        raise FileProblem(f"the block '{WORD}' is never closed", opened)
    start = next(number for number, line in enumerate(lines) if line.number == opened)
    others = [fence.opened for fence in fences(lines) if fence.opened > opened]
    end = start + 1
    while (
        end < len(lines)
        and lines[end].fenced
        and lines[end].number != (others[0] if others else None)
    ):
        end += 1
    document = _parse([line.text for line in lines[start + 1 : end - 1]], opened + 1)
    blank = start > 0 and end < len(lines) and not (lines[start - 1].text + lines[end].text).strip()
    return [*lines[:start], *lines[end + blank :]], _read(document)


def misspelt_blocks(lines: Sequence[SourceLine], reader: str) -> list[FileProblem]:
    """Return a warning about each block whose word is nearly `checks`, as `reader` is shown it.

    No usual language has such a name, so other blocks of code are left alone.
    """
    problems = []
    for fence in fences(lines):
        word = fence.info.split()[0] if fence.info else WORD
        letters = re.sub("[^a-z]", "", word.lower())
        if word != WORD and get_close_matches(letters, [WORD], cutoff=_NEAR):
            message = f"the block '{fence.info}' is text for the {reader}, not a block of checks"
            hint = f"did you mean '{WORD}'?"
            problems.append(FileProblem(message, fence.opened, severity="warning", hint=hint))
    return problems


def _parse(lines: list[str], first: int) -> Document:
    try:
        return read_yaml("\n".join(lines), first_line=first)
    except FileProblem as problem:
        wrong = "".join(lines[: (problem.line or first) - first + 1][-2:])
        if "{{" in wrong and not problem.message.startswith(('the " ', "the ' ")):
            problem.hint = "put quotes round a text that holds '{{', as in \"{{name}}\""
        raise


def _read(document: Document) -> CheckList:
    value = document.value
    line = document.line()
    if isinstance(value, dict) and WORD in value:
        fields = Fields(document, BLOCK_FIELDS)
        when = fields.choice("evaluator", WHEN) or "on_pass"
        rule = _rule(fields.value("pass"), document.line("pass"))
        entries, judge = _entries(document.at(WORD))
        if judge and rule != "all":
            raise FileProblem(
                f"'pass: {rule}' cannot be combined with the check 'judge'",
                judge.line,
                hint="'evaluator: on_fail' has them judge what fails the other checks",
            )
        return CheckList(entries, rule, when, line, judge)
    entries, judge = _entries(document)
    return CheckList(entries, line=line, judge=judge)


def _entries(document: Document) -> tuple[tuple[CheckEntry, ...], CheckEntry | None]:
    value = document.value
    if not isinstance(value, list):
        raise FileProblem(
            "the checks must be a list", document.line(), hint="as in '- contains: Paris'"
        )
    if not value:
        raise FileProblem("the list of checks is empty", document.line())
    entries = tuple(
        CheckEntry(_as_written(document.at(number)), document.line(number))
        for number in range(len(value))
    )
    judges = []
    problems: list[FileProblem] = []
    for entry in entries:
        try:
            name, _ = split(entry.definition, entry.line)  # the type does not depend on a row
        except FileProblem as problem:
            problems.append(problem)
        else:
            judges += [entry] if name == JUDGE else []
    if problems:
        raise_all(_read_all(entries))
    if len(judges) > 1:
        raise FileProblem(
            "a second check 'judge'", judges[1].line, hint="models judge a test in one way"
        )
    return entries, judges[0] if judges else None


def _as_written(document: Document) -> Json:
    """Return a check in which texts and numbers have the form in which they are written.

    So `1.10` is not `1.1`, and a number has all its digits.
    """
    definition: Json = document.value
    for place, kind in places_as_written(definition):
        value = document.at(*place).value
        inner = (
            [(*place, number) for number in range(len(value))] if isinstance(value, list) else []
        )
        for at in inner or [place]:
            scalar = document.at(*at)
            if scalar.form is None or scalar.value is None or isinstance(scalar.value, str):
                continue
            if kind == "texts":
                definition = fill_in(definition, [(at, scalar.form)])
            elif isinstance(scalar.value, float) and is_finite(scalar.value):
                definition = fill_in(definition, [(at, str(Decimal(scalar.form)))])
    return definition


def _read_all(entries: Iterable[CheckEntry]) -> list[FileProblem]:
    """Return the problems of all checks of which one has no type, as far as no row is needed."""
    problems: list[FileProblem] = []
    for entry in entries:
        try:
            is_whole = not any(True for _ in templates_in(entry.definition))
            (read_check if is_whole else split)(entry.definition, entry.line)
        except FileProblem as problem:
            problems.append(problem)
    return problems


def _rule(value: Json, line: int) -> str:
    if value is None or value in ("all", "any"):
        return value or "all"
    match = _RULE.match(value) if isinstance(value, str) else None
    try:
        least = float(match[1]) if match else -1.0
    except ValueError:
        least = -1.0
    if not 0 <= least <= 1:
        raise FileProblem("'pass' must be all, any, or a text such as '>= 0.8'", line)
    return f">= {least:g}"


TEST_FIELDS = (
    "id",
    "description",
    "tags",
    "systemPrompts",
    "availableTools",
    "structuredResponseSchema",
    "replacements",
    "lists",
    "dataset",
    "rowId",
    "messages",
    "answer",
    "group",
    "options",
    "attempts",
    "repetitions",
    "evaluators",
    "threshold",
    "template",
)
PROMPT_FIELDS = ("id", "description", "tags", "replacements", "template")
_HINTS = {
    "assert asserts assertions metric metrics scorer scorers checks rubric": (
        "write instructions for a judge, or a block '~~~checks', below the last '---'"
    ),
    "expected expectedoutput ideal target reference": (
        "write it below the last '---': in instructions for a judge, or in a check"
    ),
    "vars var variables": "write 'replacements', or 'dataset' for a file of rows",
    "provider providers model models candidate candidates targets": (
        "evalstore.yaml names the models that answer under 'candidates'"
    ),
    "prompt prompts input question": (
        "the question follows a line '# User'; 'systemPrompts' names system prompts"
    ),
    "judge judges grader graders": "write 'evaluators'",
    "data goldens samples tests": "write 'dataset'",
    "epoch epochs repeat": "write 'attempts'",
    "temperature maxtokens topp seed stop": "write it under 'options'",
    "metadata": "write 'tags'",
    "tool tools": "write 'availableTools'",
}
_ELSEWHERE = {name: hint for names, hint in _HINTS.items() for name in names.split()}
"""From the fields of promptfoo, Inspect and DeepEval, in lower-case letters alone, to a hint."""
_FIRST_FIELD = re.compile(r"\s*[a-z]\w*:(?:\s|$)")
_HEAD_END = re.compile(rf"^---|{HEADING.pattern}", HEADING.flags)
_NAME = re.compile(r"^(\w+):", re.MULTILINE)
_BLANK_LINE = re.compile(r"(?<=\S\n)(?=[ \t]*\n)")
_WORDS = {"id", "description", "answer", "group"}
"""The fields that may also begin an ordinary text: they hold any text."""


@dataclass(frozen=True, slots=True)
class TestFile:
    """A test file, read but not filled."""

    path: str
    runs: tuple[RepeatedConversation, ...]
    instructions: Section | None
    checks: CheckList | None = None
    id: str | None = None
    tags: tuple[str, ...] = ()
    system_prompts: tuple[str | None, ...] = (None,)
    tools: tuple[str, ...] = ()
    schema: str | None = None
    replacements: Replacements = ({},)
    dataset: DatasetSpec | None = None
    row_id: str | None = None
    """The column or replacement that names the rows."""
    answer: Section | tuple[Section, ...] | None = None
    """The recorded answer, or one for each turn; an expression may evaluate to none."""
    group: Section | None = None
    """The value that rows of one group share; None: all rows are one group."""
    options: Options = Options()
    attempts: int | None = None
    evaluators: tuple[str, ...] | None = None
    threshold: float | None = None
    plain: bool = False
    document: Document | None = None
    is_cut: bool = True
    """Whether there is a line `---` before the evaluation."""
    readable: bool = True
    """Whether its texts can be filled, as its turns, replacements and checks have no problems."""

    def line_of(self, *field: str | int) -> int:
        """Return the line of a field of the frontmatter."""
        return self.document.line(*field) if self.document else 1

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return the turns of the first conversation."""
        return self.runs[0].turns if self.runs else ()

    @property
    def first_line(self) -> int:
        """Return the line at which the conversation begins."""
        turns = self.turns
        return turns[0].section.first if turns else self.line_of("messages")


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A system prompt or a judge prompt, read but not filled."""

    path: str
    id: str
    turns: tuple[Turn, ...]
    tags: tuple[str, ...] = ()
    replacements: Replacements = ({},)
    plain: bool = False
    document: Document | None = None
    warnings: tuple[FileProblem, ...] = ()

    @property
    def is_evaluator(self) -> bool:
        """Return whether evaluators use it."""
        return "_evaluator" in self.tags

    def line_of(self, *field: str | int) -> int:
        """Return the line of a field of the frontmatter."""
        return self.document.line(*field) if self.document else 1


def parse_test(path: str, text: str) -> TestFile:
    """Read a test file; raises `FileProblem` if it is invalid."""
    test, collector = read_test(path, text)
    collector.finish()
    return test


def read_test(path: str, text: str) -> tuple[TestFile, Collector]:
    """Read the valid parts of a test file, and collect its problems.

    Raises `FileProblem` when its frontmatter cannot be read at all.
    """
    document, body, first = split_frontmatter(text)
    collector = Collector()
    fields = Fields(
        document, TEST_FIELDS, collector=collector, reserved=TEST_FIELDS, elsewhere=_ELSEWHERE
    )
    # A field that is misspelt may be the dataset.
    is_misspelt = bool(collector.problems) and fields.value("replacements") is None
    if document is None:
        _find_unopened(body, collector)
    plain = fields.choice("template", ("plain", "jinja")) == "plain"
    lines = list(scan_lines(body, first, "text" if plain else "removed"))
    above, below, separator = cut(lines)
    if separator and "<!--" in body:
        rest = body.split("\n", separator - first + 1)[separator - first + 1 :]
        below = list(scan_lines("".join(rest), separator + 1, "kept"))
    nothing: tuple[RepeatedConversation, ...] = ()
    has_words = may_have_words(body)
    runs = collector.attempt(
        lambda: _conversations(fields, above, first, has_words=has_words), nothing
    )
    wrong = {each.line for problem in collector.problems for each in (problem, *problem.others)}
    doubtful = doubtful_headings(above)
    collector.warnings += [warning for warning in doubtful if warning.line not in wrong]
    collector.warnings += misspelt_blocks(above, "candidate") + misspelt_blocks(below, "judge")
    block = collector.attempt(lambda: take_block(below), None)
    prose, checks = block or ([], None)
    instructions = section(prose, separator or first)
    replacements: Replacements | None = collector.attempt(lambda: read_replacements(document), None)
    dataset: DatasetSpec | None = None
    if document and fields.value("dataset") is not None:
        dataset = collector.attempt(lambda: read_spec(document.at("dataset")), None)
    is_dataset_read = dataset is not None or (fields.value("dataset") is None and not is_misspelt)
    test = TestFile(
        path=path,
        runs=runs,
        instructions=instructions if instructions.text else None,
        checks=checks,
        id=fields.text("id"),
        tags=fields.tags(),
        system_prompts=collector.attempt(lambda: _system_prompts(fields), (None,)),
        tools=tuple(fields.names("availableTools")),
        schema=fields.text("structuredResponseSchema"),
        replacements=replacements or ({},),
        dataset=dataset,
        row_id=fields.text("rowId"),
        answer=_answer(fields),
        group=_text(fields, "group"),
        options=fields.options(),
        attempts=fields.whole("attempts", least=1, most=MOST_SAMPLES),
        evaluators=tuple(fields.names("evaluators"))
        if fields.value("evaluators") is not None
        else None,
        threshold=fields.number("threshold", 0, 1),
        plain=plain,
        document=document,
        is_cut=separator is not None,
        readable=bool(runs and replacements is not None and is_dataset_read and block),
    )
    collector.problems += _find_conflicts(test)
    if test.checks and test.checks.judge and not test.instructions:
        collector.attempt(test.checks.require_criteria, None)
    implies_checks = test.schema or not {"_json_mode", "_tools_only"}.isdisjoint(test.tags)
    if test.runs and not test.is_cut and not implies_checks:
        opened = next((fence.opened for fence in fences(lines) if not fence.closed), None)
        turns = test.runs[0].turns
        problem = FileProblem(
            "nothing says how to judge the answer",
            turns[-1].section.first if turns else lines[0].number if lines else 1,
            hint="write a line '---' and the instructions for the judge below it",
        )
        if opened is not None:
            message = "this code block is never closed, so no '---' ends the messages"
            problem = FileProblem(message, opened)
        collector.problems.append(problem)
    if separator and runs and runs[-1].turns:
        collector.problems += rules_of_last_message(above, separator, runs[-1].turns[-1])
    return test, collector


def _find_unopened(body: str, collector: Collector | None = None) -> None:
    """Refuse fields at the start of a text, which has no frontmatter.

    Where they may be ordinary text, warn of them, if there is a `collector`.
    """
    ends = (_HEAD_END.search(body), _BLANK_LINE.search(body)) if _FIRST_FIELD.match(body) else ()
    for end in filter(None, ends):
        matter, is_rule = body[: end.start()].rstrip(), end[0] == "---"
        try:
            _, read = read_test("", f"---\n{matter}\n---\n# User\n\n.\n---\n.")
        except FileProblem:
            continue
        last = matter.count("\n") + 2
        names = _NAME.findall(matter)[: len(TEST_FIELDS)]
        told = {name for name in names if end[0] or name != name.lower()} - _WORDS
        if is_sure := bool(told or (is_rule and HEADING.search(body))):
            is_sure = all((each.line or 0) > last for each in read.problems + read.warnings)
        if is_sure or (is_rule and any(nearest(name, TEST_FIELDS, cutoff=0.8) for name in names)):
            line = last - 1 - matter.strip().count("\n")
            below = "" if is_rule else ", and one below the fields"
            problem = FileProblem(
                "the fields at the start are not frontmatter, so the model would see them",
                line,
                severity="warning" if collector and not is_sure else "error",
                hint=f"write a line '---' above line {line}{below}",
            )
            if collector is None or is_sure:
                raise problem
            collector.warnings.append(problem)
            return


def _find_conflicts(test: TestFile) -> Iterator[FileProblem]:
    """Yield the problems of fields that cannot be combined."""
    if test.tools and test.schema:
        yield FileProblem(
            "'availableTools' and 'structuredResponseSchema' cannot be combined",
            test.line_of("structuredResponseSchema"),
            hint="remove one of them",
        )
    if test.tools and any(turn.name is not None for run in test.runs for turn in run.turns):
        yield FileProblem(
            "'availableTools' and turns that the candidate fills cannot be combined",
            test.line_of("availableTools"),
            hint="tools are not executed, so the conversation cannot continue after a call",
        )
    if "_evaluator" in test.tags:
        yield FileProblem(
            "the tag '_evaluator' marks judge prompts, not tests",
            test.line_of("tags"),
            hint="remove it, or move the file to the prompts folder",
        )
    checks = test.checks
    if checks and checks.when != "on_pass" and not test.instructions and not checks.judge:
        yield FileProblem(
            f"'evaluator: {checks.when}', but there are no instructions for a judge",
            checks.line,
            hint="write them beside the block, or remove the field",
        )


def _conversations(
    fields: Fields, above: list[SourceLine], first: int, *, has_words: bool
) -> tuple[RepeatedConversation, ...]:
    """Read the conversations of the body, or of the field `messages`."""
    repetitions = fields.whole("repetitions", least=1, most=MOST_SAMPLES)
    if fields.document and fields.value("messages") is not None:
        if line := next((line for line in above if line.text.strip(SPACE)), None):
            raise FileProblem(
                "'messages' replaces the text above '---', which must be empty",
                line.number,
                hint="remove one of them, or write a line '---' above how it is judged",
            )
        return (read_messages_field(fields.document.at("messages"), repetitions),)
    try:
        return read_runs(with_emoji(above) if has_words else above, first, repetitions)
    except FileProblem as problem:
        problem.others = (*problem.others, *misspelt_headings(above))
        raise


def _text(fields: Fields, name: str) -> Section | None:
    """Read a text of the frontmatter that may be a template."""
    text = fields.text(name)
    return None if text is None else _section(text, fields.line(name))


def _answer(fields: Fields) -> Section | tuple[Section, ...] | None:
    """Read the recorded answer, or that of each turn; each may be a template, or empty."""
    value = fields.value("answer")
    if isinstance(value, str) and not value.strip():
        return _section(value, fields.line("answer"))
    if not isinstance(value, list):
        return _text(fields, "answer")
    texts = fields.texts("answer")
    return tuple(_section(text, fields.line("answer", n)) for n, text in enumerate(texts))


def _section(text: str, line: int) -> Section:
    return Section(text, tuple(line + i for i in range(text.count("\n") + 1)), line)


def parse_prompt(path: str, text: str, folder: str | None = None) -> PromptFile:
    """Read a prompt file; raises `FileProblem` for the first problem.

    `folder` is the prompts folder; the path below it is the default id.
    """
    document, body, first = split_frontmatter(text)
    if document is None:
        _find_unopened(body)
    collector = Collector()
    fields = Fields(document, PROMPT_FIELDS, collector=collector, reserved=TEST_FIELDS)
    plain = fields.choice("template", ("plain", "jinja")) == "plain"
    lines = list(scan_lines(body, first, "text" if plain else "removed"))
    tags = fields.tags()
    turns = split_turns(lines)
    evaluator = "_evaluator" in tags
    if not turns or not any(turn.section.text for turn in turns):
        raise FileProblem(
            "the prompt is empty", first, hint="write the system text below the frontmatter"
        )
    for turn in turns:
        if turn.name:
            raise FileProblem("a prompt has no turn to be filled", turn.section.first)
    collector.warnings += headings_of_prompt(lines, evaluator=evaluator)
    if evaluator:
        check_order(turns, fillable=False)
    else:
        only_system(turns, lines)
    prompt = PromptFile(
        path=path,
        id=fields.text("id") or default_id(path, folder),
        turns=turns,
        tags=tags,
        replacements=read_replacements(document),
        plain=plain,
        document=document,
        warnings=tuple(collector.warnings),
    )
    collector.finish()
    return prompt


def _system_prompts(fields: Fields) -> tuple[str | None, ...]:
    value = fields.value("systemPrompts")
    if value is None:
        return (None,)
    if not isinstance(value, list) or not all(
        item is None or isinstance(item, str) for item in value
    ):
        raise FileProblem("'systemPrompts' must be a list of ids", fields.line("systemPrompts"))
    return tuple(dict.fromkeys(value)) or (None,)
