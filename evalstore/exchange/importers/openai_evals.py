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
    Imported,
    ImportOptions,
    NotTakenError,
    SkippedItem,
    as_list,
    as_mapping,
    include,
    is_file,
    parse_json,
    positive_int,
    read_unpacked,
    reason_of,
    require,
    require_readable,
    skipping,
    source_text,
    taking,
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
from evalstore.exchange.importers.template_writer import (
    ANSWER,
    CONVERSATION,
    Message,
    PromptPiece,
    literal,
    middle_of,
    safe_file_name,
    split_prompt,
    unique,
    write_prompt,
    write_test,
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


@dataclass(frozen=True, slots=True)
class Eval:
    """One eval of an eval file."""

    name: str
    path: str
    """The path of its files, unique among evals."""
    kind: str
    """The name of its class, such as `Match`."""
    args: dict[str, Any]
    description: str | None
    file: str
    line: int | None

    def warning(self, reason: str) -> SkippedItem:
        """Return a warning about a difference in the imported eval."""
        return SkippedItem(self.file, f"'{self.name}': {reason}", self.line)


def read_yaml_document(path: Path) -> tuple[Document, SkippedItem | None]:
    """Read a YAML document, and a warning if it has duplicate keys, of which the last is used.

    Raises `FileProblem`.
    """
    text = normalise(read_unpacked(path))
    try:
        return read_yaml(text), None
    except FileProblem as problem:
        document = read_yaml(text, repeats=True)
        reason = f"{problem.message}: the last one counts, as in OpenAI Evals"
        return document, SkippedItem(str(path), reason, problem.line, problem.column)


def read_judges(folder: Path) -> dict[str, Mapping[str, Any] | str]:
    """Return the specs of judges: one per file, or several in one; a text says why there is none.

    A spec of a file that cannot be read has the name of the file.
    """
    judges: dict[str, Mapping[str, Any] | str] = {}
    unread: dict[str, str] = {}
    for path in yaml_files(folder):
        try:
            value = read_yaml_document(path)[0].value
        except FileProblem as problem:
            unread[path.stem] = f"'{path.name}' cannot be read: {reason_of(problem)}"
            continue
        specs = as_mapping(value)
        for name, spec in ({path.stem: value} if "prompt" in specs else specs).items():
            if isinstance(spec, dict):
                judges.setdefault(name, spec)
    return unread | judges


def yaml_files(folder: Path) -> list[Path]:
    """Return the YAML files of a folder, sorted."""
    return sorted(path for path in folder.glob("*") if path.suffix in (".yaml", ".yml"))


@dataclass(frozen=True, slots=True)
class EvalSources:
    """Finds and reads the files that an eval refers to."""

    folder: Path
    """The folder of the eval file."""
    registry: Path
    judges: dict[Path, dict[str, Mapping[str, Any] | str]]
    """Those of registries that were read."""
    working_folder: Path | None = None
    """The folder in which files of samples are looked for first, as `oaieval` does."""

    def find(self, name: str, kind: str = "data") -> Path | None:
        """Return a file of the registry; None if it does not exist. Raises `NotTakenError`."""
        working = [self.working_folder] if self.working_folder and kind == "data" else []
        places = (*working, self.registry / kind, self.folder, self.folder / kind, self.registry)
        paths = [place / name for place in places if is_file(place / name)]
        refused: NotTakenError | None = None
        for path in paths:
            try:
                with taking(f"'{name}' "):
                    require_readable(path)
                return path
            except NotTakenError as problem:
                refused = refused or problem
        if refused:
            raise refused
        return None

    def judge(self, name: str) -> Mapping[str, Any]:
        """Return the spec of a judge; raises `NotTakenError`."""
        if self.registry not in self.judges:
            self.judges[self.registry] = read_judges(self.registry / "modelgraded")
        missing = f"the registry's 'modelgraded' has no judge '{name}'"
        spec = self.judges[self.registry].get(name, missing)
        if isinstance(spec, str):
            raise NotTakenError(spec)
        return spec

    def text(self, name: str) -> str | None:
        """Return the text of a file; None if it does not exist. Raises `NotTakenError`."""
        path = self.find(name)
        return None if path is None else source_text(path, f"'{name}' ")

    def rows(self, name: Any, left: list[SkippedItem]) -> list[JsonLinesRow]:
        """Return the rows of a data file; raises `NotTakenError` if it does not exist."""
        require(isinstance(name, str), "it names no file of samples ('samples_jsonl')")
        path = self.find(name)
        if path is None:
            raise NotTakenError(f"the registry's 'data' has no file '{name}'")
        return read_rows(path, left)

    def path_of(self, name: str) -> str:
        """Return the name of a data file for messages."""
        return str(self.find(name) or name)


@dataclass
class WrittenEval:
    """The result of importing an eval."""

    front: dict[str, Json] = field(default_factory=dict)
    """Fields of the test behind the first ones."""
    turns: list[tuple[str, str]] = field(default_factory=list)
    check: Json = None
    instructions: str = ""
    rows: list[JsonLinesRow] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    """Further files, such as prompts."""
    left: list[SkippedItem] = field(default_factory=list)
    warnings: list[SkippedItem] = field(default_factory=list)


def generation(eval_spec: Eval) -> dict[str, Json]:
    """Return the token limit, for classes that use it, and the temperature that a class sends."""
    options: dict[str, Json] = {"temperature": 0} if eval_spec.kind in _AT_ZERO else {}
    limit = as_mapping(eval_spec.args.get("sample_kwargs")).get(
        "max_tokens", eval_spec.args.get("max_tokens")
    )
    if eval_spec.kind in _LIMITED and positive_int(limit):
        options["maxOutputTokens"] = positive_int(limit)
    return {"options": options} if options else {}


def unknown_arguments(eval_spec: Eval, known: tuple[str, ...]) -> list[SkippedItem]:
    """Return a warning for each argument that is not imported."""
    return [
        eval_spec.warning(f"the argument '{name}' is not imported")
        for name in eval_spec.args
        if name not in (*known, *_IGNORED)
    ]


# --- an equivalent check for each class


IDEAL = "{{ item.ideal }}"
_KNOWN = ("samples_jsonl", "num_few_shot", "few_shot_jsonl", "max_tokens")

Writer = Callable[[Eval, EvalSources, "ImportOptions"], WrittenEval]


def find_class(eval_spec: Eval) -> Writer:
    """Return the function that imports evals of this class; raises `NotTakenError`."""
    known: dict[str, Writer] = {
        **dict.fromkeys(CHECKS, _write_comparison),
        "ModelBasedClassify": write_graded,
    }
    if eval_spec.kind not in known:
        hint = suggest(eval_spec.kind, known, "classes that can be imported")
        raise NotTakenError(f"its class '{eval_spec.kind}' has its own code ({hint})")
    return known[eval_spec.kind]


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
_FEW_SHOT = ("Match", "Translate")
_OWN: Mapping[str, tuple[str, ...]] = {
    "Includes": ("ignore_case",),
    "MatchWithSolvers": ("task_description",),
}


def _write_comparison(eval_spec: Eval, sources: EvalSources, options: ImportOptions) -> WrittenEval:
    written = WrittenEval()
    examples = _few_shot(eval_spec, sources, written)
    rows = _read_rows(eval_spec, sources, written, lambda row: _read(row, eval_spec, examples))
    check = CHECKS[eval_spec.kind]
    if eval_spec.kind == "Includes" and eval_spec.args.get("ignore_case"):
        check = {**check, "ignoreCase": True}
    if eval_spec.kind != "JsonValidator" and any(_is_empty(row.values) for row in rows):
        check = {**check, "allowEmpty": True}
    prompts, written.files = _system_prompt(eval_spec, sources, options)
    written.front = {**prompts, **generation(eval_spec), **messages_field(rows)}
    written.turns, written.check = turns_of(rows), check
    written.warnings += unknown_arguments(eval_spec, (*_KNOWN, *_OWN.get(eval_spec.kind, ())))
    return written


def _read_rows(
    eval_spec: Eval,
    sources: EvalSources,
    written: WrittenEval,
    convert: Callable[[JsonLinesRow], JsonLinesRow],
) -> list[JsonLinesRow]:
    """Return the samples of an eval as rows of the test; those that are not valid are noted."""
    file = eval_spec.args.get("samples_jsonl")
    place = sources.path_of(str(file))
    for row in sources.rows(file, written.left):
        with skipping(written.left, place, row.line):
            written.rows.append(convert(row))
    return written.rows


def _is_empty(values: dict[str, Any]) -> bool:
    """Return whether a row has no ideal answer, or an empty one."""
    ideal = values.get("ideal_json", values["ideal"])
    return ideal in ("", []) or (isinstance(ideal, list) and "" in ideal)


def _read(row: JsonLinesRow, eval_spec: Eval, examples: list[dict[str, Json]]) -> JsonLinesRow:
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
    if eval_spec.kind == "JsonValidator":
        return row
    require("ideal" in row.values, "the row has no 'ideal'")
    ideal = row.values["ideal"]
    ideals = ideal if isinstance(ideal, list) else [ideal]
    are_texts = all(isinstance(item, str) for item in ideals)
    require(are_texts, "'ideal' must be a text or a list of texts")
    if eval_spec.kind == "MatchWithSolvers":
        require(ideals, "'ideal' is an empty list")
        return row.with_values(ideal=ideals[0])
    if eval_spec.kind == "JsonMatch":
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


def _few_shot(eval_spec: Eval, sources: EvalSources, written: WrittenEval) -> list[dict[str, Json]]:
    """Return the few-shot messages, which are inserted before the last message."""
    count = positive_int(eval_spec.args.get("num_few_shot"))
    if not count or eval_spec.kind not in _FEW_SHOT:
        return []
    name = eval_spec.args.get("few_shot_jsonl")
    messages: list[dict[str, Json]] = []
    rows = sources.rows(name, written.left)
    if written.left:
        raise NotTakenError(f"its examples '{name}' cannot be read: {written.left[0].reason}")
    for row in rows[:count]:
        for message in as_list(row.values.get("sample")):
            with skipping(written.left, sources.path_of(str(name)), row.line):
                messages.append(read_message(len(messages) + 1, message))
    return messages


def _system_prompt(
    eval_spec: Eval, sources: EvalSources, options: ImportOptions
) -> tuple[dict[str, Json], dict[str, bytes]]:
    """Return the fields and files for the task description, which solvers show first."""
    text = eval_spec.args.get("task_description")
    if eval_spec.kind != "MatchWithSolvers" or not isinstance(text, str) or not text.strip():
        return {}, {}
    if text.endswith(".txt"):
        text = sources.text(text) or text
    id = "/".join(part for part in (options.name, eval_spec.path) if part)
    content = write_prompt({"id": id}, [("system", literal(text))])
    return {"systemPrompts": [id]}, {f"prompts/{eval_spec.path}.md": content}


# --- ModelBasedClassify: a model classifies the answer by choosing an option


_KNOWN_OF_GRADED = (
    *("samples_jsonl", "modelgraded_spec", "modelgraded_spec_file", "eval_type", "match_fn"),
    *("modelgraded_spec_args", "samples_renamings", "sample_kwargs", "max_tokens"),
    *("multicomp_n", "multicomp_temperature", "metaeval"),
)
_ANSWERS = ("cot_classify", "classify_cot", "classify")


def write_graded(eval_spec: Eval, sources: EvalSources, options: ImportOptions) -> WrittenEval:
    """Import a model-graded eval as a test."""
    if eval_spec.args.get("multicomp_n", 1) not in (1, None):
        raise NotTakenError("it compares several answers in one prompt ('multicomp_n')")
    if eval_spec.args.get("metaeval"):
        raise NotTakenError("it measures the judge, not the candidate ('metaeval')")
    name = eval_spec.args.get("modelgraded_spec") or eval_spec.args.get("modelgraded_spec_file")
    if not isinstance(name, str):
        raise NotTakenError("it names no 'modelgraded_spec'")
    spec = sources.judge(name)
    outputs = spec.get("input_outputs") or {"input": "completion"}
    if not isinstance(outputs, dict) or len(outputs) != 1:
        raise NotTakenError("its judge compares the answers to several inputs")
    ((input_name, answer_name),) = outputs.items()
    written = WrittenEval()
    constants = {
        **as_mapping(spec.get("args")),
        **as_mapping(eval_spec.args.get("modelgraded_spec_args")),
    }
    names = _Names(str(input_name), str(answer_name), constants)
    messages = list(names.messages(spec.get("prompt")))
    if not any(piece.runtime == ANSWER for _, pieces in messages for piece in pieces):
        raise NotTakenError(f"the prompt of its judge never shows the answer ('{{{answer_name}}}')")
    renamed = as_mapping(eval_spec.args.get("samples_renamings"))
    rows = _read_rows(eval_spec, sources, written, lambda row: _row(row, renamed, names))
    id = f"{options.name}/{eval_spec.path}".lstrip("/")
    grading = split_prompt(id, messages)
    if grading.differs:
        reason = "the judge reads the parts of its prompt in another order"
        written.warnings.append(eval_spec.warning(reason))
    written.check = {"judge": {"prompt": id, **_check(eval_spec, spec, written)}}
    written.front = {**generation(eval_spec), **messages_field(rows, names.input_name)}
    if any(names.answer_name in row.values for row in rows):
        written.front["answer"] = f"{{{{ item.{names.answer_name} | default(none) }}}}"
    written.turns, written.instructions = turns_of(rows, names.input_name), grading.instructions
    written.files = {f"prompts/{eval_spec.path}.md": grading.prompt}
    written.warnings += unknown_arguments(eval_spec, _KNOWN_OF_GRADED)
    return written


class _Names:
    """Resolves the names in a judge's prompt."""

    def __init__(self, input_name: str, answer_name: str, constants: Mapping[str, Any]) -> None:
        self.input_name = input_name
        self.answer_name = answer_name
        self.constants = constants
        self.columns: list[str] = []
        """Columns of the samples that are shown to the judge."""

    def messages(self, prompt: Any) -> Iterator[Message]:
        """Yield the messages of the prompt in pieces; raises `NotTakenError`."""
        value = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        try:
            messages = read_messages(value)
        except NotTakenError as problem:
            raise NotTakenError(f"the prompt of its judge cannot be read: {problem}") from problem
        for message in messages:
            yield str(message["role"]), list(self._pieces(str(message["content"])))

    def _pieces(self, text: str) -> Iterator[PromptPiece]:
        """Split a text with names in single braces, as in Python's `str.format`."""
        try:
            parts = list(string.Formatter().parse(text))
        except ValueError as error:
            raise NotTakenError(f"the prompt of its judge cannot be read: {error}") from error
        text = ""
        for before, name, _, _ in parts:
            text += before
            if name is None:  # a doubled brace
                continue
            if text:
                yield PromptPiece(text)
                text = ""
            if name == self.input_name:
                yield PromptPiece("", runtime=CONVERSATION)
            elif name == self.answer_name:
                yield PromptPiece("", runtime=ANSWER)
            elif name in self.constants:
                yield PromptPiece(_constant(name, self.constants[name]))
            elif name.isidentifier():
                self.columns.append(name)
                yield PromptPiece(f"{{{{ item.{name} }}}}", is_template=True)
            else:
                raise NotTakenError(f"the prompt of its judge uses '{name}'")
        if text:
            yield PromptPiece(text)


def _constant(name: str, value: Any) -> str:
    if isinstance(value, dict | list):
        raise NotTakenError(f"its judge is asked several times, each with another '{name}'")
    return str(value)


def _row(row: JsonLinesRow, renamed: Mapping[str, str], names: _Names) -> JsonLinesRow:
    if renamed:
        values = {str(renamed.get(name, name)): value for name, value in row.values.items()}
        row = JsonLinesRow(row.line, values)
    for name in (names.input_name, *names.columns):
        require(name in row.values, f"the row has no '{name}'")
    answer = row.values.get(names.answer_name)
    require(isinstance(answer, str | None), f"'{names.answer_name}' must be a text")
    input_value = row.values[names.input_name]
    messages = read_messages(input_value)
    return row if isinstance(input_value, str) else row.with_values(**{names.input_name: messages})


def _check(eval_spec: Eval, spec: Mapping[str, Any], written: WrittenEval) -> dict[str, Json]:
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
        reason = (
            "OpenAI Evals only counts choices: here all of them pass, unless you shorten 'pass'"
        )
        written.warnings.append(eval_spec.warning(reason))
        return {"choices": choices, **reading, "pass": choices}
    scores = _scores(spec["choice_scores"], choices)
    missing = [choice for choice in choices if choice not in scores]
    lowest, highest = min(scores.values()), max(scores.values())
    require(lowest != highest, "all choices have the same score, so nothing says which pass")
    if missing:
        reason = f"no score for {', '.join(missing)}: it counts as the lowest"
        written.warnings.append(eval_spec.warning(reason))
    check: dict[str, Json] = {
        "choices": choices,
        "scores": {choice: plain(scores.get(choice, lowest)) for choice in choices},
        **reading,
    }
    if not set(scores.values()) <= {0, 1}:
        check["pass"] = middle_of(lowest, highest)
        reason = f"without a threshold, an answer passes if its score is {check['pass']}"
        written.warnings.append(eval_spec.warning(reason))
    return check


def _scores(choice_scores: Any, choices: list[str]) -> dict[str, float]:
    if choice_scores == "from_strings":
        try:
            return {choice: float(choice) for choice in choices}
        except ValueError:
            raise NotTakenError("its scores are its choices, but these are not numbers") from None
    require(isinstance(choice_scores, dict), "its 'choice_scores' are not numbers")
    scores = {str(name): value for name, value in choice_scores.items()}
    if not all(isinstance(score, int | float) for score in scores.values()):
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
    judges: dict[Path, dict[str, Any]] = field(default_factory=dict)
    """By registry."""

    def registry(self, folder: Path) -> None:
        root = next(
            (
                candidate
                for candidate in (folder, folder / "registry", folder / "evals" / "registry")
                if yaml_files(candidate / "evals")
            ),
            None,
        )
        if root is not None:
            for path in yaml_files(root / "evals"):
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
            document, warning = read_yaml_document(path)
        except FileProblem as problem:
            self.imported.skip(path, reason_of(problem), problem.line, problem.column)
            return
        if document.value is None:  # an empty file
            return
        if warning:
            self.imported.warnings.append(warning)
        if not isinstance(document.value, dict):
            self.imported.skip(path, "an eval file must be a mapping of evals", 1)
            return
        described = {
            spec["id"]: spec["description"]
            for spec in document.value.values()
            if isinstance(spec, dict)
            and isinstance(spec.get("id"), str)
            and isinstance(spec.get("description"), str)
        }
        for name in document.value:
            entry = document.at(name)
            if isinstance(entry.value, dict) and "class" in entry.value:
                self._eval(name, entry, path, registry, described.get(name))

    def _eval(
        self, name: str, entry: Document, path: Path, registry: Path, description: str | None
    ) -> None:
        spec: dict[str, Any] = entry.value
        eval_spec = Eval(
            name=name,
            path=self._path(name),
            kind=str(spec["class"]).rpartition(":")[2],
            args=as_mapping(spec.get("args")),
            description=text if isinstance(text := spec.get("description"), str) else description,
            file=str(path),
            line=entry.line(),
        )
        if eval_spec.path != _path(name):
            reason = f"another eval has this name: this one becomes '{eval_spec.path}'"
            self.imported.warnings.append(eval_spec.warning(reason))
        self._write(eval_spec, self._sources(path.parent, registry))

    def _path(self, name: str) -> str:
        """Return an unused path for the files of an eval."""
        taken = (file[6:-3] for file in self.imported.files if file.startswith("tests/"))
        return unique(_path(name), taken)

    def _sources(self, folder: Path, registry: Path) -> EvalSources:
        return EvalSources(folder, registry, self.judges, self.options.working_folder)

    def samples(self, path: Path, under: Path | None = None) -> None:
        """Import samples without an eval; they are judged by `Match`, the most common class."""
        name = path.relative_to(under).as_posix() if under else path.name
        name = _without_suffix(name)
        args = {"samples_jsonl": path.name}
        eval_spec = Eval(name, self._path(name), "Match", args, None, str(path), None)
        files_before = len(self.imported.files)
        self._write(eval_spec, self._sources(path.parent, path.parent))
        if len(self.imported.files) > files_before:
            self.imported.warn(path, "no eval says how these samples are judged: 'Match' is used")

    def _write(self, eval_spec: Eval, sources: EvalSources) -> None:
        try:
            written = find_class(eval_spec)(eval_spec, sources, self.options)
        except NotTakenError as problem:
            self.imported.skip(eval_spec.file, f"'{eval_spec.name}': {problem}", eval_spec.line)
            return
        known = set(self.imported.left)  # evals may share samples
        self.imported.left += [item for item in written.left if item not in known]
        self.imported.warnings += written.warnings
        if not written.rows:
            self.imported.skip(
                eval_spec.file,
                f"'{eval_spec.name}' has no row that can be used",
                eval_spec.line,
            )
            return
        self.imported.rows += len(written.rows)
        name = eval_spec.path
        data = self._data_file(eval_spec, written.rows)
        front: dict[str, Json] = (
            {"description": eval_spec.description} if eval_spec.description else {}
        )
        front["dataset"] = posixpath.relpath(data, posixpath.dirname(f"tests/{name}"))
        self.imported.files[f"tests/{name}.md"] = write_test(
            {**front, **written.front},
            written.turns,
            instructions=written.instructions,
            checks=[written.check],
        )
        self.imported.files |= written.files

    def _data_file(self, eval_spec: Eval, rows: list[JsonLinesRow]) -> str:
        """Add the data file of an eval and return its path; evals share identical files."""
        name, data = eval_spec.path, write_rows(rows)
        paths = [f"tests/{name}.jsonl"]
        if all(row.raw is not None for row in rows):
            stem = _path(_without_suffix(str(eval_spec.args["samples_jsonl"])))
            paths.insert(0, f"tests/{'data/' if '/' in stem else ''}{stem}.jsonl")
        for path in paths:
            if self.imported.files.setdefault(path, data) == data:
                return path
        path = unique(f"tests/{name}", (file[:-6] for file in self.imported.files)) + ".jsonl"
        self.imported.files[path] = data
        return path


def _path(name: str) -> str:
    return "/".join(safe_file_name(part) for part in name.split("/") if part not in ("", ".", ".."))


def _without_suffix(name: str) -> str:
    for suffix in _DATA:
        name = name.removesuffix(suffix)
    return name
