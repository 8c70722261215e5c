"""Importer of OpenAI Evals: samples, eval files and registries, in files and folders.

A class has an equivalent check, or a judge that classifies the answer. Answers get the same
verdicts as from the classes in `evals.elsuite`. Differences are listed in
`docs/coming-from/openai-evals.md`.
"""

from __future__ import annotations

import posixpath
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalstore.checks.types.judge import plain
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    ANSWER,
    CONVERSATION,
    Imported,
    ImportOptions,
    Message,
    NotTakenError,
    PromptPiece,
    SkippedItem,
    as_list,
    as_mapping,
    include,
    is_file,
    literal,
    middle_of,
    parse_json,
    positive_int,
    read_unpacked,
    reason_of,
    require,
    require_readable,
    safe_file_name,
    skipping,
    source_text,
    split_prompt,
    taking,
    unique,
    write_prompt,
    write_test,
)
from evalstore.exchange.importers.json_lines import (
    JsonLinesRow,
    messages_field,
    read_message,
    read_messages,
    read_rows,
    turns_of,
    write_rows,
)
from evalstore.files.access import normalise
from evalstore.files.fields import suggest
from evalstore.files.yaml12 import Document, read_yaml

_LIMITED = ("JsonMatch", "JsonValidator", "Translate", "ModelBasedClassify")
"""Classes that pass `max_tokens` to the model."""
_AT_ZERO = ("FuzzyMatch", "JsonMatch", "JsonValidator", "Match")
"""Classes that ask the model at a temperature of 0; the others send none."""
_IGNORED = ("n_samples", "shuffle", "seed")
"""Arguments that select rows; evalstore has `--sample` and `--limit` for that."""


@dataclass
class Eval:
    """One eval of an eval file, where its files are, and what is made of it."""

    importer: _EvalsImporter
    name: str
    path: str
    """The path of its files, unique among evals."""
    kind: str
    """The name of its class, such as `Match`."""
    args: dict[str, Any]
    file: Path
    registry: Path
    line: int | None = None
    rows: list[JsonLinesRow] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    """Further files, such as prompts."""
    left: list[SkippedItem] = field(default_factory=list)
    warnings: list[SkippedItem] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Return the id of a prompt that belongs to it."""
        return f"{self.importer.options.name}/{self.path}".lstrip("/")

    def warn(self, reason: str) -> None:
        """Note what differs from the original."""
        self.warnings.append(SkippedItem(str(self.file), f"'{self.name}': {reason}", self.line))

    def find(self, name: str) -> Path | None:
        """Return a data file of the registry; None if it does not exist. Raises `NotTakenError`.

        It is looked for in the working folder first, as `oaieval` does.
        """
        working, folder = self.importer.options.working_folder, self.file.parent
        places = [working] if working else []
        places += [self.registry / "data", folder, folder / "data", self.registry]
        refused: NotTakenError | None = None
        for path in (place / name for place in places if is_file(place / name)):
            try:
                with taking(f"'{name}' "):
                    require_readable(path)
                return path
            except NotTakenError as problem:
                refused = refused or problem
        if refused:
            raise refused
        return None

    def judge(self) -> Mapping[str, Any]:
        """Return the spec of the judge; raises `NotTakenError`."""
        name = self.args.get("modelgraded_spec") or self.args.get("modelgraded_spec_file")
        if not isinstance(name, str):
            raise NotTakenError("it names no 'modelgraded_spec'")
        judges = self.importer.judges
        if self.registry not in judges:
            judges[self.registry] = read_judges(self.registry / "modelgraded")
        missing = f"the registry's 'modelgraded' has no judge '{name}'"
        spec = judges[self.registry].get(name, missing)
        if isinstance(spec, str):
            raise NotTakenError(spec)
        return spec

    def samples(self, name: Any) -> tuple[Path, list[JsonLinesRow]]:
        """Return a data file and its rows; raises `NotTakenError` if it does not exist."""
        require(isinstance(name, str), "it names no file of samples ('samples_jsonl')")
        path = self.find(name)
        if path is None:
            raise NotTakenError(f"the registry's 'data' has no file '{name}'")
        return path, read_rows(path, self.left)

    def read_rows(self, convert: Callable[[JsonLinesRow], JsonLinesRow]) -> list[JsonLinesRow]:
        """Return the samples as rows of the test; those that are not valid are noted."""
        path, rows = self.samples(self.args.get("samples_jsonl"))
        for row in rows:
            with skipping(self.left, path, row.line):
                self.rows.append(convert(row))
        return self.rows

    def front(self, column: str = "input") -> dict[str, Json]:
        """Return the fields of the test: options, and messages if the body cannot show them.

        The options are the token limit, for classes that use it, and the temperature that a class
        sends.
        """
        options: dict[str, Json] = {"temperature": 0} if self.kind in _AT_ZERO else {}
        limit = as_mapping(self.args.get("sample_kwargs")).get(
            "max_tokens", self.args.get("max_tokens")
        )
        if self.kind in _LIMITED and positive_int(limit):
            options["maxOutputTokens"] = limit
        front: dict[str, Json] = {"options": options} if options else {}
        return front | messages_field(self.rows, column)


def read_document(path: Path, warnings: list[SkippedItem]) -> Document:
    """Read a YAML document; a warning is added if it has duplicate keys, of which the last is used.

    Raises `FileProblem`.
    """
    text = normalise(read_unpacked(path))
    try:
        return read_yaml(text)
    except FileProblem as problem:
        document = read_yaml(text, repeats=True)
        reason = f"{problem.message}: the last one counts, as in OpenAI Evals"
        warnings.append(SkippedItem(str(path), reason, problem.line, problem.column))
        return document


def read_judges(folder: Path) -> dict[str, Mapping[str, Any] | str]:
    """Return the specs of judges: one per file, or several in one; a text says why there is none.

    A spec of a file that cannot be read has the name of the file.
    """
    judges: dict[str, Mapping[str, Any] | str] = {}
    unread: dict[str, str] = {}
    for path in yaml_files(folder):
        try:
            specs = as_mapping(read_document(path, []).value)
        except FileProblem as problem:
            unread[path.stem] = f"'{path.name}' cannot be read: {reason_of(problem)}"
            continue
        for name, spec in ({path.stem: specs} if "prompt" in specs else specs).items():
            if isinstance(spec, dict):
                judges.setdefault(name, spec)
    return unread | judges


def yaml_files(folder: Path) -> list[Path]:
    """Return the YAML files of a folder, sorted."""
    return sorted(path for path in folder.glob("*") if path.suffix in (".yaml", ".yml"))


_Test = tuple[dict[str, Json], list[tuple[str, str]], Json, str]
"""Fields of a test, its body, its check, and instructions for a judge."""


# --- an equivalent check for each class


IDEAL = "{{ item.ideal }}"
CHECKS: Mapping[str, Json] = {
    "Match": {"startsWith": IDEAL},
    "MatchWithSolvers": {"startsWith": [IDEAL, "{{ item.ideal | capitalize }}"]},
    "Includes": {"containsAny": IDEAL},
    "FuzzyMatch": {"fuzzy": IDEAL},
    "JsonMatch": {"jsonEquals": "{{ item.ideal_json }}", "anyOf": True},
    "JsonValidator": "json",
    "Translate": {"bleu": IDEAL, "pass": "> 0.3"},
}
"""The checks of the classes."""
_GRADED = "ModelBasedClassify"
_FEW_SHOT = ("Match", "Translate")
_KNOWN = ("samples_jsonl", "max_tokens")
_OWN: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(CHECKS, ("num_few_shot", "few_shot_jsonl")),
    "Includes": ("num_few_shot", "few_shot_jsonl", "ignore_case"),
    "MatchWithSolvers": ("num_few_shot", "few_shot_jsonl", "task_description"),
    _GRADED: (
        *("modelgraded_spec", "modelgraded_spec_file", "eval_type", "match_fn"),
        *("modelgraded_spec_args", "samples_renamings", "sample_kwargs"),
        *("multicomp_n", "multicomp_temperature", "metaeval"),
    ),
}
"""The arguments of a class that are imported, besides those of all."""


def _compare(spec: Eval) -> _Test:
    """Return the test of an eval that compares the answer with the ideal ones."""
    examples = _few_shot(spec)
    rows = spec.read_rows(lambda row: _read(row, spec.kind, examples))
    check = CHECKS[spec.kind]
    if spec.kind == "Includes" and spec.args.get("ignore_case"):
        check = {**check, "ignoreCase": True}
    ideals = [row.values.get("ideal_json", row.values.get("ideal")) for row in rows]
    empty = (ideal in ("", []) or (isinstance(ideal, list) and "" in ideal) for ideal in ideals)
    if spec.kind != "JsonValidator" and any(empty):
        check = {**check, "allowEmpty": True}
    return {**_system_prompt(spec), **spec.front()}, turns_of(rows), check, ""


def _read(row: JsonLinesRow, kind: str, examples: list[dict[str, Json]]) -> JsonLinesRow:
    """Convert a row for the test; raises `NotTakenError` for invalid ones."""
    require("input" in row.values, "the row has no 'input'")
    value = row.values["input"]
    messages = read_messages(value)
    if examples:
        is_text = isinstance(value, str)
        require(not is_text, "few-shot examples need messages as 'input', not a text")
        messages = [*messages[:-1], *examples, *messages[-1:]]
    if not isinstance(value, str):
        row = row.with_values(input=messages)
    if kind == "JsonValidator":
        return row
    require("ideal" in row.values, "the row has no 'ideal'")
    ideal = row.values["ideal"]
    ideals = ideal if isinstance(ideal, list) else [ideal]
    are_texts = all(isinstance(item, str) for item in ideals)
    require(are_texts, "'ideal' must be a text or a list of texts")
    if kind == "MatchWithSolvers":
        require(ideals, "'ideal' is an empty list")
        return row.with_values(ideal=ideals[0])
    if kind == "JsonMatch":
        row = row.with_values(
            ideal_json=[item for item in map(_parse, ideals) if not _has_null(item)]
        )
    return row


def _parse(text: str) -> Json:
    try:
        return parse_json(text)
    except ValueError:
        raise NotTakenError(f"the ideal {text[:60]!r} is not JSON") from None


def _has_null(value: Json) -> bool:
    """Return whether a value contains null or NaN, which never match."""
    if isinstance(value, dict | list):
        return any(map(_has_null, value.values() if isinstance(value, dict) else value))
    return value is None or value != value


def _few_shot(spec: Eval) -> list[dict[str, Json]]:
    """Return the few-shot messages, which are inserted before the last message."""
    count = positive_int(spec.args.get("num_few_shot"))
    if not count or spec.kind not in _FEW_SHOT:
        return []
    name = spec.args.get("few_shot_jsonl")
    messages: list[dict[str, Json]] = []
    path, rows = spec.samples(name)
    if spec.left:
        raise NotTakenError(f"its examples '{name}' cannot be read: {spec.left[0].reason}")
    for row in rows[:count]:
        for message in as_list(row.values.get("sample")):
            with skipping(spec.left, path, row.line):
                messages.append(read_message(len(messages) + 1, message))
    return messages


def _system_prompt(spec: Eval) -> dict[str, Json]:
    """Return the field for the task description, which solvers show first, and add its file."""
    text = spec.args.get("task_description")
    if spec.kind != "MatchWithSolvers" or not isinstance(text, str) or not text.strip():
        return {}
    if text.endswith(".txt") and (path := spec.find(text)):
        text = source_text(path, f"'{text}' ") or text
    content = write_prompt({"id": spec.id}, [("system", literal(text))])
    spec.files[f"prompts/{spec.path}.md"] = content
    return {"systemPrompts": [spec.id]}


# --- ModelBasedClassify: a model classifies the answer by choosing an option


_ANSWERS = ("cot_classify", "classify_cot", "classify")


def _grade(eval_spec: Eval) -> _Test:
    """Return the test of a model-graded eval."""
    args = eval_spec.args
    if args.get("multicomp_n", 1) not in (1, None):
        raise NotTakenError("it compares several answers in one prompt ('multicomp_n')")
    if args.get("metaeval"):
        raise NotTakenError("it measures the judge, not the candidate ('metaeval')")
    spec = eval_spec.judge()
    outputs = spec.get("input_outputs") or {"input": "completion"}
    if not isinstance(outputs, dict) or len(outputs) != 1:
        raise NotTakenError("its judge compares the answers to several inputs")
    ((asked, answer),) = ((str(name), str(value)) for name, value in outputs.items())
    constants = {**as_mapping(spec.get("args")), **as_mapping(args.get("modelgraded_spec_args"))}
    columns = [asked]
    runtime = {asked: CONVERSATION, answer: ANSWER}
    messages = list(_read_prompt(spec.get("prompt"), runtime, constants, columns))
    if not any(piece.runtime == ANSWER for _, pieces in messages for piece in pieces):
        raise NotTakenError(f"the prompt of its judge never shows the answer ('{{{answer}}}')")
    renamed = as_mapping(args.get("samples_renamings"))
    rows = eval_spec.read_rows(lambda row: _row(row, renamed, columns, answer))
    prompt, instructions, differs = split_prompt(eval_spec.id, messages)
    if differs:
        eval_spec.warn("the judge reads the parts of its prompt in another order")
    check = {"judge": {"prompt": eval_spec.id, **_check(eval_spec, spec)}}
    front = eval_spec.front(asked)
    if any(answer in row.values for row in rows):
        front["answer"] = f"{{{{ item.{answer} | default(none) }}}}"
    eval_spec.files[f"prompts/{eval_spec.path}.md"] = prompt
    return front, turns_of(rows, asked), check, instructions


def _read_prompt(
    prompt: Any, runtime: Mapping[str, str], constants: Mapping[str, Any], columns: list[str]
) -> Iterator[Message]:
    """Yield the messages of a judge's prompt in pieces; raises `NotTakenError`.

    `runtime` maps names to their placeholders. Columns of the samples that are shown are added to
    `columns`.
    """
    value = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    try:
        for message in read_messages(value):
            pieces: list[PromptPiece] = []
            text = ""
            for before, name, _, _ in string.Formatter().parse(str(message["content"])):
                text += before
                if name is None:  # a doubled brace, or the end
                    continue
                pieces += [PromptPiece(text)] if text else []
                text = ""
                if name in runtime:
                    pieces.append(PromptPiece("", runtime=runtime[name]))
                elif name in constants:
                    several = isinstance(constants[name], dict | list)
                    require(
                        not several, f"its judge is asked several times, each with another '{name}'"
                    )
                    pieces.append(PromptPiece(str(constants[name])))
                else:
                    require(name.isidentifier(), f"it uses '{name}'")
                    columns.append(name)
                    pieces.append(PromptPiece(f"{{{{ item.{name} }}}}", is_template=True))
            yield str(message["role"]), [*pieces, *([PromptPiece(text)] if text else [])]
    except (NotTakenError, ValueError) as problem:
        raise NotTakenError(f"the prompt of its judge cannot be read: {problem}") from problem


def _row(
    row: JsonLinesRow, renamed: Mapping[str, str], columns: list[str], answer: str
) -> JsonLinesRow:
    """Return a row with the columns that a judge is shown, the first of which is the input."""
    if renamed:
        values = {str(renamed.get(name, name)): value for name, value in row.values.items()}
        row = JsonLinesRow(row.line, values)
    for name in columns:
        require(name in row.values, f"the row has no '{name}'")
    require(isinstance(row.values.get(answer), str | None), f"'{answer}' must be a text")
    value = row.values[columns[0]]
    messages = read_messages(value)
    return row if isinstance(value, str) else row.with_values(**{columns[0]: messages})


def _check(eval_spec: Eval, spec: Mapping[str, Any]) -> dict[str, Json]:
    """Return how the judge's choice is parsed, and which choices pass."""
    choices = spec.get("choice_strings")
    if isinstance(choices, str) and choices.startswith("from_n"):
        raise NotTakenError("its choices are as many as there are answers ('from_n')")
    choices = [str(choice) for choice in choices] if isinstance(choices, str | list) else []
    require(len(choices) >= 2, "its judge has no 'choice_strings'")
    eval_type = eval_spec.args.get("eval_type") or spec.get("eval_type")
    answer = next((name for name in _ANSWERS if str(eval_type).startswith(name)), None)
    require(answer is not None, "neither the eval nor its judge has an 'eval_type'")
    # There, too, a choice that cannot be read has the lowest score.
    reading: dict[str, Json] = {"answer": answer, "invalid": "lowest"}
    if not spec.get("choice_scores"):
        eval_spec.warn(
            "OpenAI Evals only counts choices: here all of them pass, unless you shorten 'pass'"
        )
        return {"choices": choices, **reading, "pass": choices}
    scores = _scores(spec["choice_scores"], choices)
    lowest, highest = min(scores.values()), max(scores.values())
    require(lowest != highest, "all choices have the same score, so nothing says which pass")
    if missing := [choice for choice in choices if choice not in scores]:
        eval_spec.warn(f"no score for {', '.join(missing)}: it counts as the lowest")
    check: dict[str, Json] = {
        "choices": choices,
        "scores": {choice: plain(scores.get(choice, lowest)) for choice in choices},
        **reading,
    }
    if not set(scores.values()) <= {0, 1}:
        check["pass"] = middle_of(lowest, highest)
        eval_spec.warn(f"without a threshold, an answer passes if its score is {check['pass']}")
    return check


def _scores(choice_scores: Any, choices: list[str]) -> dict[str, float]:
    if choice_scores == "from_strings":
        try:
            return {choice: float(choice) for choice in choices}
        except ValueError:
            raise NotTakenError("its scores are its choices, but these are not numbers") from None
    scores = {str(name): value for name, value in as_mapping(choice_scores).items()}
    if not scores or not all(isinstance(score, int | float) for score in scores.values()):
        raise NotTakenError("its 'choice_scores' are not numbers")
    known = {name: value for name, value in scores.items() if name in choices}
    require(known, f"its 'choice_scores' match none of its choices {', '.join(choices)}")
    return known


_FOLDERS = ("data", "modelgraded")
"""The other folders of a registry, beside that of the eval files."""
_DATA = (".jsonl.gz", ".jsonl", ".ndjson", ".json")


def read(paths: list[Path], options: ImportOptions) -> Imported:
    """Import registries (`evals/*.yaml`, `data/`), eval files, or samples without an eval."""
    importer = _EvalsImporter(options)
    for path in paths:
        if path.is_dir():
            importer.registry(path)
        elif path.suffix in (".yaml", ".yml"):
            for name in _FOLDERS:
                include(path.parent.parent / name)
            importer.eval_file(path, path.parent.parent)
        elif path.name.endswith(_DATA):
            importer.samples(path)
        else:
            raise EvalstoreError(
                f"'{path.name}' is not a file of OpenAI Evals",
                hint="name a registry, an eval file (.yaml), or samples (.jsonl)",
            )
    importer.imported.require_any(
        f"no evals in '{paths[0].name}'", "an eval has a 'class' and 'args'"
    )
    return importer.imported


@dataclass
class _EvalsImporter:
    """Collects the imported evals."""

    options: ImportOptions
    imported: Imported = field(default_factory=Imported)
    judges: dict[Path, dict[str, Mapping[str, Any] | str]] = field(default_factory=dict)
    """By registry."""

    def registry(self, folder: Path) -> None:
        for root in (folder, folder / "registry", folder / "evals" / "registry"):
            if files := yaml_files(root / "evals"):
                for path in files:
                    self.eval_file(path, root)
                return
        samples = sorted(file for file in folder.rglob("*") if file.name.endswith(_DATA[:3]))
        files = yaml_files(folder)
        if not samples and not files:
            raise EvalstoreError(
                f"no evals in '{folder.name}'",
                hint="name the folder that has 'evals/*.yaml' and 'data', or samples (.jsonl)",
            )
        for path in files:
            self.eval_file(path, folder.parent)
        for path in [] if files else samples:
            self.samples(path, under=folder)

    def eval_file(self, path: Path, registry: Path) -> None:
        """Import all evals of a file; entries with only an `id` describe the eval of that name."""
        try:
            document = read_document(path, self.imported.warnings)
        except FileProblem as problem:
            self.imported.skip(path, reason_of(problem), problem.line, problem.column)
            return
        if document.value is None:  # an empty file
            return
        if not isinstance(document.value, dict):
            self.imported.skip(path, "an eval file must be a mapping of evals", 1)
            return
        specs = {name: as_mapping(value) for name, value in document.value.items()}
        described = {
            spec["id"]: spec.get("description")
            for spec in specs.values()
            if isinstance(spec.get("id"), str)
        }
        for name, spec in specs.items():
            if "class" in spec:
                kind, args = str(spec["class"]).rpartition(":")[2], as_mapping(spec.get("args"))
                place = self._path(name), kind, args, path, registry, document.at(name).line()
                texts = (spec.get("description"), described.get(name))
                text = next((text for text in texts if isinstance(text, str)), "")
                self._write(Eval(self, name, *place), text)

    def _path(self, name: str) -> str:
        """Return an unused path for the files of an eval."""
        taken = (file[6:-3] for file in self.imported.files if file.startswith("tests/"))
        return unique(_path(name), taken)

    def samples(self, path: Path, under: Path | None = None) -> None:
        """Import samples without an eval; they are judged by `Match`, the most common class."""
        name = _without_suffix(path.relative_to(under).as_posix() if under else path.name)
        args = {"samples_jsonl": path.name}
        files_before = len(self.imported.files)
        self._write(Eval(self, name, self._path(name), "Match", args, path, path.parent))
        if len(self.imported.files) > files_before:
            self.imported.warn(path, "no eval says how these samples are judged: 'Match' is used")

    def _write(self, spec: Eval, description: str = "") -> None:
        try:
            if spec.kind not in _OWN:
                hint = suggest(spec.kind, _OWN, "classes that can be imported")
                raise NotTakenError(f"its class '{spec.kind}' has its own code ({hint})")
            front, turns, check, words = (_grade if spec.kind == _GRADED else _compare)(spec)
        except NotTakenError as problem:
            self.imported.skip(spec.file, f"'{spec.name}': {problem}", spec.line)
            return
        known = set(self.imported.left)  # evals may share samples
        self.imported.left += [item for item in spec.left if item not in known]
        for name in spec.args:
            if name not in (*_KNOWN, *_OWN[spec.kind], *_IGNORED):
                spec.warn(f"the argument '{name}' is not imported")
        self.imported.warnings += spec.warnings
        if not spec.rows:
            self.imported.skip(spec.file, f"'{spec.name}' has no row that can be used", spec.line)
            return
        self.imported.rows += len(spec.rows)
        test = f"tests/{spec.path}.md"
        data = posixpath.relpath(self._data_file(spec), posixpath.dirname(test))
        first: dict[str, Json] = {"description": description} if description else {}
        self.imported.files[test] = write_test(
            {**first, "dataset": data, **front}, turns, instructions=words, checks=[check]
        )
        self.imported.files |= spec.files

    def _data_file(self, spec: Eval) -> str:
        """Add the data file of an eval and return its path; evals share identical files."""
        data = write_rows(spec.rows)
        paths = [f"tests/{spec.path}.jsonl"]
        if all(row.raw is not None for row in spec.rows):
            stem = _path(_without_suffix(str(spec.args["samples_jsonl"])))
            paths.insert(0, f"tests/{'data/' if '/' in stem else ''}{stem}.jsonl")
        stems = (file[:-6] for file in self.imported.files)
        paths.append(unique(f"tests/{spec.path}", stems) + ".jsonl")
        return next(path for path in paths if self.imported.files.setdefault(path, data) == data)


def _path(name: str) -> str:
    return "/".join(safe_file_name(part) for part in name.split("/") if part not in ("", ".", ".."))


def _without_suffix(name: str) -> str:
    for suffix in _DATA:
        name = name.removesuffix(suffix)
    return name
