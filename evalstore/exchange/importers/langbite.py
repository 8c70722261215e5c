"""Import of LangBiTe: libraries of prompt templates, and a requirements model."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    Imported,
    ImportOptions,
    NotTakenError,
    SkippedItem,
    parse_json,
    read_source,
    reason_of,
    skipping,
)
from evalstore.exchange.importers.langbite_templates import (
    LangbiteTemplate,
    Requirement,
    Scenario,
    plain_number,
    read_scenario,
    read_table,
    read_template_list,
)
from evalstore.exchange.importers.template_writer import (
    escape,
    safe_file_name,
    unique,
    write_test,
)

_Place = tuple[str, int]
"""The file and the line of a template."""
_LANGUAGE = re.compile(r"(?:^|_)([a-z]{2}_[a-z]{2})(?=$|[-_.])")


@dataclass
class _Library:
    """The templates in one file."""

    path: Path
    language: str
    templates: list[LangbiteTemplate] = field(default_factory=list)


def read(paths: list[Path], _options: ImportOptions) -> Imported:
    """Import the templates that a requirements model selects as test files."""
    imported = Imported()
    sources = [file for path in paths for file in _files(path)]
    scenarios = list(_scenarios(sources, imported))
    requirements = [
        requirement for _, scenario in scenarios for requirement in scenario.requirements
    ]
    libraries = list(_libraries(sources, requirements, imported))
    if (not scenarios or not libraries) and imported.left:
        return imported
    if not scenarios or not libraries:
        missing = "requirements model (JSON)" if libraries else "templates (CSV)"
        raise EvalstoreError(
            f"no file with a {missing}" if libraries else f"no file with {missing}",
            hint="name both: the templates, and the model that selects and fills them",
        )
    for _, scenario in scenarios:
        for name, value in scenario.settings.items():
            imported.settings.setdefault(name, value)
    progress = _Progress(imported, _requirement_tags(requirements))
    for path, scenario in scenarios:
        _import_scenario(path, scenario, libraries, progress)
    if progress.tolerances:
        imported.settings["thresholds"] = [
            {"where": list(tags), "passRate": tolerance, "by": ["model"]}
            for tags, tolerance in progress.tolerances.items()
        ]
    _report_unselected(libraries, progress, imported)
    return imported


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(
        file for file in path.rglob("*") if file.suffix.lower() in (".csv", ".tsv", ".json")
    )


def _text(path: Path, imported: Imported) -> str | None:
    try:
        return read_source(path).decode("utf-8-sig")
    except FileProblem as problem:
        imported.skip(path, reason_of(problem))
    except UnicodeDecodeError as error:
        imported.skip(path, f"is not UTF-8: {error.reason}")
    return None


def _scenarios(sources: list[Path], imported: Imported) -> Iterator[tuple[Path, Scenario]]:
    for path in sources:
        if path.suffix.lower() != ".json" or (text := _text(path, imported)) is None:
            continue
        if '"requirements"' not in text:
            continue
        with skipping(imported.left, path):
            scenario = read_scenario(text)
            imported.left += [SkippedItem(str(path), problem) for problem in scenario.problems]
            if scenario.models:
                names = ", ".join(scenario.models)
                reason = f"name the models under 'candidates' yourself; here they are {names}"
                imported.warn(path, reason)
            yield path, scenario


def _libraries(
    sources: list[Path], requirements: list[Requirement], imported: Imported
) -> Iterator[_Library]:
    languages = {language for requirement in requirements for language in requirement.languages}
    for path in sources:
        language = _LANGUAGE.search(path.stem.lower())
        language_code = language[1] if language else None
        if path.suffix.lower() == ".json":
            document = _prompts(path)
            if document is None:
                continue
            language_code = (
                document.get("input_language") or document.get("language") or language_code
            )
            entries = read_template_list(document.get("prompts"), str(path))
        elif (text := _text(path, imported)) is not None:
            entries = read_table(text, str(path))
        else:
            continue
        language_code = language_code or (next(iter(languages)) if len(languages) == 1 else None)
        if not isinstance(language_code, str):
            imported.skip(path, "its name has no language, as in 'prompts_en_us.csv'")
            continue
        library = _Library(path, language_code.lower())
        for entry in entries:
            if isinstance(entry, SkippedItem):
                imported.left.append(entry)
            else:
                library.templates.append(entry)
        yield library


def _prompts(path: Path) -> dict[str, Json] | None:
    try:
        document = parse_json(read_source(path))
    except (FileProblem, ValueError):
        return None
    return document if isinstance(document, dict) and "prompts" in document else None


@dataclass
class _Progress:
    """The tests made from the templates so far."""

    imported: Imported
    labels: dict[int, str]
    """Tags of requirements that overlap with others, by `id()` of the requirement."""
    texts: dict[_Place, dict[bytes, tuple[str, ...]]] = field(default_factory=dict)
    """The distinct tests of each template with their tags; empty if it was skipped."""
    tolerances: dict[tuple[str, ...], float] = field(default_factory=dict)
    """Required pass rates by the tags of the tests."""


def _requirement_tags(requirements: list[Requirement]) -> dict[int, str]:
    """Return a tag for each requirement that overlaps with another one."""
    labels: dict[int, str] = {}
    for requirement in requirements:
        if any(requirement is not other and requirement.overlaps(other) for other in requirements):
            name = safe_file_name(requirement.name).lstrip("_") or "requirement"
            labels[id(requirement)] = unique(name, labels.values())
    return labels


def _import_scenario(
    path: Path, scenario: Scenario, libraries: list[_Library], progress: _Progress
) -> None:
    """Add tests for the templates that the requirements of one model select."""
    imported = progress.imported
    for requirement in scenario.requirements:
        for library in libraries:
            if library.language not in requirement.languages:
                continue
            counts: Counter[tuple[str, str]] = Counter()
            over_limit = 0
            for template in library.templates:
                if (
                    template.concern != requirement.concern
                    or template.input_type not in requirement.inputs
                    or template.reflection_type not in requirement.reflections
                ):
                    continue
                bucket = template.input_type, template.reflection_type
                counts[bucket] += 1
                if scenario.templates is not None and counts[bucket] > scenario.templates:
                    over_limit += 1
                    progress.texts.setdefault((str(library.path), template.line), {})
                else:
                    _add_test(template, requirement, library, scenario, progress)
            if over_limit:
                reason = (
                    f"{over_limit} more templates of '{requirement.concern}' "
                    f"in '{library.language}' are skipped: 'nTemplates' is {scenario.templates}"
                )
                imported.warn(path, reason)


def _add_test(
    template: LangbiteTemplate,
    requirement: Requirement,
    library: _Library,
    scenario: Scenario,
    progress: _Progress,
) -> None:
    """Add the test of a template, unless another requirement has added the same test."""
    file, imported = str(library.path), progress.imported
    tags_by_text = progress.texts.setdefault((file, template.line), {})
    label = progress.labels.get(id(requirement))

    def composed(*tags: str) -> LangbiteTest:
        judged = scenario.judged
        return compose(template, requirement, library.language, judged=judged, tags=tags)

    try:
        test = composed()
    except (ValueError, NotTakenError) as problem:
        imported.skip(file, problem, template.line)
        return
    template_tags = (
        template.concern,
        library.language,
        template.input_type,
        template.reflection_type,
    )
    is_same = test.text in tags_by_text
    tags = tags_by_text.setdefault(test.text, (*template_tags, label) if label else template_tags)
    progress.tolerances[tags] = max(requirement.tolerance, progress.tolerances.get(tags, 0))
    if is_same:
        return
    name = safe_file_name(template.id.zfill(3)) if template.id else f"line-{template.line}"
    if len(tags_by_text) > 1:
        name += f".{label}"
    stem = f"tests/{library.language}/{safe_file_name(template.concern)}/{name}"
    place = unique(stem, (file_path[:-3] for file_path in imported.files)) + ".md"
    imported.files[place] = composed(label).text if label else test.text
    imported.rows += test.rows
    for warning in test.warnings:
        imported.warn(file, warning, template.line)


def _report_unselected(libraries: list[_Library], progress: _Progress, imported: Imported) -> None:
    """Warn about templates that no requirement selects, once per file and concern."""
    for library in libraries:
        unselected = [
            template
            for template in library.templates
            if (str(library.path), template.line) not in progress.texts
        ]
        for concern, count in Counter(template.concern for template in unselected).items():
            line = next(template.line for template in unselected if template.concern == concern)
            many = "1 template" if count == 1 else f"{count} templates"
            reason = f"{many} of the concern '{concern}' skipped: no requirement selects them"
            imported.warn(library.path, reason, line)


# --- a template with its communities as a test file


_DELIMITER = '"""'
_GLUE = f" The sentence is delimited by {_DELIMITER}. "
"""The text between a prefix and the prompt, in all languages."""
_TEMPLATE_SIGNS = re.compile(r"\{\{|\{%")
_BRACES = re.compile(r"\{[^\W\d]\w*\}")


@dataclass(frozen=True, slots=True)
class LangbiteTest:
    """The test file of a template."""

    text: bytes
    rows: int
    warnings: tuple[str, ...] = ()


def compose(
    template: LangbiteTemplate,
    requirement: Requirement,
    language: str,
    *,
    judged: bool,
    tags: tuple[str, ...] = (),
) -> LangbiteTest:
    """Return the test file; raises `ValueError` or `NotTakenError` if it cannot be filled.

    `tags` are added to those of the template.
    """
    communities = requirement.community_list(language)
    markups = re.findall(rf"\{{({re.escape(requirement.markup)}[0-9]*)\}}", template.text)
    names = list(dict.fromkeys(markups))
    if len(names) > len(communities):
        needed = f"{len(names)} distinct communities needed"
        raise ValueError(f"{needed}, {len(communities)} given")
    for community in communities if names else ():
        if _TEMPLATE_SIGNS.search(community) or not community.strip():
            raise ValueError(f"the community '{community}' cannot be a value")
    oracle = translate_oracle(template, requirement.delta, judged=judged)
    template_tags = [template.concern, language, template.input_type, template.reflection_type]
    front: dict[str, Json] = {"tags": list(dict.fromkeys([*template_tags, *tags]))}
    front |= _replacements(names, requirement.markup, communities)
    text = write_test(
        front,
        [("user", _prompt(template, names))],
        instructions=oracle.instructions,
        checks=oracle.checks,
    )
    rows = math.perm(len(communities), len(names)) if names else 1
    broken = _unfilled_markups(template.text, names, requirement.markup)
    return LangbiteTest(text, rows, (*oracle.warnings, *broken))


def _replacements(names: list[str], markup: str, communities: list[str]) -> dict[str, Json]:
    if not names:
        return {}
    if len(names) == 1:
        return {"replacements": {names[0]: communities}}
    return {
        "lists": {markup: communities},
        "replacements": {"$permute": {"names": names, "list": markup}},
    }


def _prompt(template: LangbiteTemplate, names: list[str]) -> str:
    """Join prefix, text and output format as LangBiTe does."""
    text = _with_placeholders(template.text, names)
    if template.task_prefix:
        prefix = escape(template.task_prefix + _GLUE + _DELIMITER)
        text = f"{prefix}{text}{_DELIMITER}."
    if template.output_formatting:
        text += " " + escape(template.output_formatting)
    return text


def _with_placeholders(text: str, names: list[str]) -> str:
    """Replace the markups in a text by placeholders."""
    if not names:
        return escape(text)
    parts = re.split(r"\{(" + "|".join(map(re.escape, names)) + r")\}", text)
    return "".join(
        "{{" + part + "}}" if number % 2 else escape(part) for number, part in enumerate(parts)
    )


def _unfilled_markups(text: str, names: list[str], markup: str) -> list[str]:
    """Return a warning about unfilled markups, including names that lack a brace."""
    unfilled = [braced for braced in _BRACES.findall(text) if braced[1:-1] not in names]
    name = rf"{re.escape(markup)}[0-9]*"
    unfilled += re.findall(rf"\{{?(?<!\w){name}(?![\w}}])|(?<![\w{{]){name}\}}", text)
    return [f"unresolved {', '.join(dict.fromkeys(unfilled))}"] if unfilled else []


# --- conversion of oracles to checks


_SIGNS = re.compile(r"[.^$*+?{}\[\]\\|()]")
"""Special characters of regular expressions."""
_LETTER = re.compile(r"\w")
_NEGATIVE = ("different", "notIncludesAny")


@dataclass(frozen=True, slots=True)
class Oracle:
    """The checks and instructions of a test."""

    checks: Json
    instructions: str = ""
    warnings: tuple[str, ...] = field(default=())


def translate_oracle(template: LangbiteTemplate, delta: Decimal, *, judged: bool) -> Oracle:
    """Convert the oracle of a template to checks; raises `ValueError` if that is impossible.

    Each answer is judged separately, except that `allSameValue` compares all answers of the
    template. `judged` is whether a model judges, too.
    """
    if template.operation == "allSameValue":
        tolerance = plain_number(delta * 100)
        settings: dict[str, Json] = {"key": escape(template.key), "max": tolerance}
        return Oracle([{"allSame": settings, "ignoreCase": True, "scope": "group"}])
    check, notes = _beginning_check(template)
    if template.operation in _NEGATIVE:
        check["not"] = True
    if not judged:
        return Oracle([check], warnings=notes)
    when = "on_pass" if template.operation == "different" else "on_fail"
    expected = escape(" or ".join(f"“{text.strip()}”" for text in template.expected))
    verb = "must not mean" if template.operation in _NEGATIVE else "must mean"
    instructions = f"The answer {verb} the same as {expected}."
    checks: Json = [check] if when == "on_pass" else {"evaluator": when, "checks": [check]}
    return Oracle(checks, instructions, notes)


def _mismatch(text: str) -> str | None:
    """Return why an expected text cannot match, or rarely, as both ends need a word boundary.

    Ends that are special characters of regular expressions are not checked.
    """
    if not text:
        return None
    starts_well, ends_well = (
        _SIGNS.match(sign) or _LETTER.match(sign) for sign in (text[0], text[-1])
    )
    if not starts_well:
        return f"'{text}' can never match: an expected text must begin with a letter or a digit"
    if not ends_well:
        return f"'{text}' matches only in front of a letter, as it ends with none"
    return None


def _beginning_check(template: LangbiteTemplate) -> tuple[dict[str, Json], tuple[str, ...]]:
    """Return a check for the beginning of an answer, and warnings.

    As in LangBiTe, expected texts are patterns, in lower case and with single spaces. They match
    whole words, so `No` matches `No, never`, but not `Nobody`.
    """
    texts = [" ".join(text.split()).lower() for text in template.expected]
    if not texts:
        check: dict[str, Json] = {"containsAny": [], "allowEmpty": True}
        return check, ("it expects nothing, so no answer can pass",)
    signs = [text for text in texts if _SIGNS.search(text)]
    if any("|" in sign for sign in signs):
        # As in LangBiTe, an alternative after '|' in an expected text matches anywhere.
        pattern = "|".join(rf"^\b{text}\b" for text in texts)
    elif len(texts) == 1:
        pattern = rf"^\b{texts[0]}\b"
    else:
        pattern = rf"^\b(?:{'|'.join(texts)})\b"
    for sign in signs:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                re.compile(sign)
        except re.error as error:
            raise ValueError(f"'{sign}' is read as a regular expression: {error}") from None
    notes = [f"'{sign}' is read as a regular expression, as in LangBiTe" for sign in signs]
    notes += [reason for text in texts if (reason := _mismatch(text))]
    return {"regex": escape(pattern), "ignoreCase": True, "normalize": "spaces"}, tuple(notes)
