"""Import of LangBiTe: libraries of prompt templates, and a requirements model."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from evalstore.core.display import plural
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    Imported,
    ImportOptions,
    NotTakenError,
    SkippedItem,
    escape,
    parse_json,
    read_source,
    safe_file_name,
    skipping,
    taking,
    unique,
    write_test,
)
from evalstore.exchange.importers.langbite_templates import (
    LangbiteTemplate,
    Requirement,
    Scenario,
    plain_number,
    read_scenario,
    read_table,
    read_template,
    read_template_list,
)

_LANGUAGE = re.compile(r"(?:^|_)([a-z]{2}_[a-z]{2})(?=$|[-_.])")


def read(paths: list[Path], _options: ImportOptions) -> Imported:
    """Import the templates that a requirements model selects as test files."""
    imported = Imported()
    sources = [file for path in paths for file in (_files(path) if path.is_dir() else [path])]
    scenarios = list(_scenarios(sources, imported))
    requirements = [each for _, scenario in scenarios for each in scenario.requirements]
    libraries = list(_libraries(sources, requirements, imported))
    if (not scenarios or not libraries) and imported.left:
        return imported
    if not scenarios or not libraries:
        missing = "a requirements model (JSON)" if libraries else "templates (CSV)"
        raise EvalstoreError(
            f"no file with {missing}",
            hint="name both: the templates, and the model that selects and fills them",
        )
    tests = _Tests(imported, requirements)
    for path, scenario in scenarios:
        for name, value in scenario.settings.items():
            imported.settings.setdefault(name, value)
        tests.add_scenario(path, scenario, libraries)
    if tests.tolerances:
        imported.settings["thresholds"] = [
            {"where": list(tags), "passRate": tolerance, "by": ["model"]}
            for tags, tolerance in tests.tolerances.items()
        ]
    tests.report_unselected(libraries)
    return imported


def _files(folder: Path) -> list[Path]:
    suffixes = (".csv", ".tsv", ".json")
    return sorted(file for file in folder.rglob("*") if file.suffix.lower() in suffixes)


def _text(path: Path) -> str:
    """Return the text of a file; raises `NotTakenError`."""
    with taking():
        data = read_source(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotTakenError(f"is not UTF-8: {error.reason}") from error


def _scenarios(sources: list[Path], imported: Imported) -> Iterator[tuple[Path, Scenario]]:
    for path in sources:
        with skipping(imported.left, path):
            if path.suffix.lower() != ".json" or '"requirements"' not in (text := _text(path)):
                continue
            scenario = read_scenario(text)
            imported.left += [SkippedItem(str(path), problem) for problem in scenario.problems]
            if scenario.models:
                names = ", ".join(scenario.models)
                reason = f"name the models under 'candidates' yourself; here they are {names}"
                imported.warn(path, reason)
            yield path, scenario


_Library = tuple[Path, str, list[LangbiteTemplate]]
"""A file, its language and its templates."""


def _libraries(
    sources: list[Path], requirements: list[Requirement], imported: Imported
) -> Iterator[_Library]:
    languages = {language for requirement in requirements for language in requirement.languages}
    for path in sources:
        match = _LANGUAGE.search(path.stem.lower())
        language = match[1] if match else None
        with skipping(imported.left, path):
            if path.suffix.lower() == ".json":
                document: Json = None
                with suppress(ValueError, FileProblem):
                    document = parse_json(read_source(path))
                if not isinstance(document, dict) or "prompts" not in document:
                    continue
                language = document.get("input_language") or document.get("language") or language
                entries = read_template_list(document.get("prompts"))
            else:
                entries = read_table(_text(path), str(path), imported.left)
            language = language or (next(iter(languages)) if len(languages) == 1 else None)
            if not isinstance(language, str):
                raise NotTakenError("its name has no language, as in 'prompts_en_us.csv'")
            templates = []
            for line, cells in entries:
                with skipping(imported.left, path, line):
                    templates.append(read_template(line, cells))
            yield path, language.lower(), templates


class _Tests:
    """The tests made from the templates so far."""

    def __init__(self, imported: Imported, requirements: list[Requirement]) -> None:
        self.tolerances: dict[tuple[str, ...], float] = {}
        """Required pass rates by the tags of the tests."""
        self._imported = imported
        self._labels: dict[int, str] = {}
        """A tag for each requirement that overlaps with another one, by its `id()`."""
        for each in requirements:
            if any(each is not other and each.overlaps(other) for other in requirements):
                name = safe_file_name(each.name).lstrip("_") or "requirement"
                self._labels[id(each)] = unique(name, self._labels.values())
        self._texts: dict[tuple[Path, int], dict[bytes, tuple[str, ...]]] = {}
        """By file and line, the distinct tests of a template with their tags."""

    def add_scenario(self, path: Path, scenario: Scenario, libraries: list[_Library]) -> None:
        """Add tests for the templates that the requirements of one model select."""
        for requirement in scenario.requirements:
            for file, language, templates in libraries:
                if language not in requirement.languages:
                    continue
                counts: Counter[tuple[str, str]] = Counter()
                over_limit = 0
                for template in filter(requirement.selects, templates):
                    bucket = template.input_type, template.reflection_type
                    counts[bucket] += 1
                    self._texts.setdefault((file, template.line), {})
                    if scenario.templates is not None and counts[bucket] > scenario.templates:
                        over_limit += 1
                        continue
                    with skipping(self._imported.left, file, template.line):
                        self._add(template, requirement, (file, language), judged=scenario.judged)
                if over_limit:
                    reason = (
                        f"{over_limit} more templates of '{requirement.concern}' "
                        f"in '{language}' are skipped: 'nTemplates' is {scenario.templates}"
                    )
                    self._imported.warn(path, reason)

    def _add(
        self,
        template: LangbiteTemplate,
        requirement: Requirement,
        library: tuple[Path, str],
        *,
        judged: bool,
    ) -> None:
        """Add the test of a template, unless another requirement has added the same test."""
        file, language = library
        label = self._labels.get(id(requirement))
        tags = template.concern, language, template.input_type, template.reflection_type
        own = (label,) if label else ()
        text, rows, warnings = compose(template, requirement, language, tags, judged=judged)
        known = self._texts[file, template.line]
        is_same = text in known
        all_tags = known.setdefault(text, (*tags, *own))
        self.tolerances[all_tags] = max(requirement.tolerance, self.tolerances.get(all_tags, 0))
        if is_same:
            return
        name = safe_file_name(template.id.zfill(3)) if template.id else f"line-{template.line}"
        if len(known) > 1:
            name += f".{label}"
        imported = self._imported
        stem = f"tests/{language}/{safe_file_name(template.concern)}/{name}"
        place = unique(stem, (file_path[:-3] for file_path in imported.files)) + ".md"
        if own:
            text, *_ = compose(template, requirement, language, (*tags, *own), judged=judged)
        imported.files[place] = text
        imported.rows += rows
        for warning in warnings:
            imported.warn(file, warning, template.line)

    def report_unselected(self, libraries: list[_Library]) -> None:
        """Warn about templates that no requirement selects, once per file and concern."""
        for file, _, templates in libraries:
            lines: dict[str, list[int]] = {}
            for template in templates:
                if (file, template.line) not in self._texts:
                    lines.setdefault(template.concern, []).append(template.line)
            for concern, unselected in lines.items():
                many = plural(len(unselected), "template")
                reason = f"{many} of the concern '{concern}' skipped: no requirement selects them"
                self._imported.warn(file, reason, unselected[0])


# --- a template with its communities as a test file


_DELIMITER = '"""'
_GLUE = f" The sentence is delimited by {_DELIMITER}. "
"""The text between a prefix and the prompt, in all languages."""
_TEMPLATE_SIGNS = re.compile(r"\{\{|\{%")
_BRACES = re.compile(r"\{[^\W\d]\w*\}")


def compose(
    template: LangbiteTemplate,
    requirement: Requirement,
    language: str,
    tags: tuple[str, ...],
    *,
    judged: bool,
) -> tuple[bytes, int, list[str]]:
    """Return the test file, its rows and warnings; raises `NotTakenError` if it cannot be filled.

    `judged` is whether a model judges, too.
    """
    communities = requirement.community_list(language)
    markups = re.findall(rf"\{{({re.escape(requirement.markup)}[0-9]*)\}}", template.text)
    names = list(dict.fromkeys(markups))
    if len(names) > len(communities):
        needed = f"{len(names)} distinct communities needed"
        raise NotTakenError(f"{needed}, {len(communities)} given")
    for community in communities if names else ():
        if _TEMPLATE_SIGNS.search(community) or not community.strip():
            raise NotTakenError(f"the community '{community}' cannot be a value")
    checks, instructions, warnings = translate_oracle(template, requirement.delta, judged=judged)
    front: dict[str, Json] = {"tags": list(dict.fromkeys(tags))}
    if len(names) == 1:
        front["replacements"] = {names[0]: communities}
    elif names:
        front["lists"] = {requirement.markup: communities}
        front["replacements"] = {"$permute": {"names": names, "list": requirement.markup}}
    turns = [("user", _prompt(template, names))]
    text = write_test(front, turns, instructions=instructions, checks=checks)
    rows = math.perm(len(communities), len(names)) if names else 1
    unfilled = _unfilled_markups(template.text, names, requirement.markup)
    return text, rows, [*warnings, *unfilled]


def _prompt(template: LangbiteTemplate, names: list[str]) -> str:
    """Join prefix, text and output format as LangBiTe does."""
    parts = re.split(r"\{(" + "|".join(map(re.escape, names)) + r")\}", template.text)
    parts = parts if names else [template.text]
    text = "".join(
        "{{" + part + "}}" if number % 2 else escape(part) for number, part in enumerate(parts)
    )
    if template.task_prefix:
        prefix = escape(template.task_prefix + _GLUE + _DELIMITER)
        text = f"{prefix}{text}{_DELIMITER}."
    if template.output_formatting:
        text += " " + escape(template.output_formatting)
    return text


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


def translate_oracle(
    template: LangbiteTemplate, delta: Decimal, *, judged: bool
) -> tuple[Json, str, list[str]]:
    """Return the checks of a template, instructions and warnings; raises `NotTakenError`.

    Each answer is judged separately, except that `allSameValue` compares all answers of the
    template. `judged` is whether a model judges, too.
    """
    if template.operation == "allSameValue":
        tolerance = plain_number(delta * 100)
        settings: dict[str, Json] = {"key": escape(template.key), "max": tolerance}
        return [{"allSame": settings, "ignoreCase": True, "scope": "group"}], "", []
    check, notes = _beginning_check(template)
    if template.operation in _NEGATIVE:
        check["not"] = True
    if not judged:
        return [check], "", notes
    when = "on_pass" if template.operation == "different" else "on_fail"
    expected = escape(" or ".join(f"“{text.strip()}”" for text in template.expected))
    verb = "must not mean" if template.operation in _NEGATIVE else "must mean"
    instructions = f"The answer {verb} the same as {expected}."
    checks: Json = [check] if when == "on_pass" else {"evaluator": when, "checks": [check]}
    return checks, instructions, notes


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


def _beginning_check(template: LangbiteTemplate) -> tuple[dict[str, Json], list[str]]:
    """Return a check for the beginning of an answer, and warnings.

    As in LangBiTe, expected texts are patterns, in lower case and with single spaces. They match
    whole words, so `No` matches `No, never`, but not `Nobody`.
    """
    texts = [" ".join(text.split()).lower() for text in template.expected]
    if not texts:
        check: dict[str, Json] = {"containsAny": [], "allowEmpty": True}
        return check, ["it expects nothing, so no answer can pass"]
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
            raise NotTakenError(f"'{sign}' is read as a regular expression: {error}") from None
    notes = [f"'{sign}' is read as a regular expression, as in LangBiTe" for sign in signs]
    notes += [reason for text in texts if (reason := _mismatch(text))]
    return {"regex": escape(pattern), "ignoreCase": True, "normalize": "spaces"}, notes
