"""Reads the fields of a YAML mapping and checks their types; suggests known names."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from evalstore.core.errors import FileProblem
from evalstore.core.values import SPECIAL_TAGS, Json, Options

if TYPE_CHECKING:
    from evalstore.files.yaml12 import Document

T = TypeVar("T")

_LISTED = 12
"""The most names that a hint lists."""

_SLIP = 0.8
"""The similarity, 0..1, from which on an unknown name counts as a typo."""

OPTIONS = ("temperature", "maxOutputTokens", "topP", "seed", "stop", "providerOptions")

MOST_SAMPLES = 10_000
"""The most answers to one question, and judgements of one answer."""


class Collector:
    """Collects the problems of one file, so that all of them are reported at once."""

    def __init__(self) -> None:
        self.problems: list[FileProblem] = []
        self.warnings: list[FileProblem] = []

    def attempt(self, read: Callable[[], T], default: T) -> T:
        """Return the result of `read`; the default when it raises a problem, which is collected."""
        try:
            return read()
        except FileProblem as problem:
            self.problems.append(problem)
            return default

    def finish(self) -> None:
        """Raise the first problem with the others attached, if there are any."""
        if self.problems:
            first, *others = self.problems
            first.others = (*first.others, *others)
            raise first


class Fields:
    """The fields of a mapping, taken out with their type checked.

    A wrong field raises `FileProblem`; with a collector it is added to that, and the field
    counts as not given. With `reserved`, an unknown field is only a warning of the collector,
    unless its name is one of these or looks like a typo of one.
    """

    def __init__(
        self,
        document: Document | None,
        known: Iterable[str],
        *,
        collector: Collector | None = None,
        reserved: Iterable[str] = (),
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        """`elsewhere` are hints on names that other tools have, in lower-case letters alone."""
        self.collector = collector
        self.document = document
        self.values: dict[str, Any] = (document.value if document else None) or {}
        known = tuple(known)
        for name in self.values:
            if name in known:
                continue
            if reserved and collector and not nearest(name, reserved, cutoff=_SLIP):
                words = f"the field '{name}' has no effect here; it is ignored"
                hint = _hint_elsewhere(name, known, elsewhere or {})
                warning = FileProblem(words, self.line(name), severity="warning", hint=hint)
                collector.warnings.append(warning)
            else:
                hint = _hint_elsewhere(name, known, elsewhere or {})
                hint = hint or suggest(name, known, "fields")
                self._fail(f"unknown field '{name}'", name, hint=hint)

    def _fail(self, message: str, *path: str | int, hint: str | None = None) -> None:
        """Collect or raise a problem with the field at `path`."""
        problem = FileProblem(message, self.line(*path), hint=hint)
        if self.collector is None:
            raise problem
        self.collector.problems.append(problem)

    def value(self, name: str) -> Any:
        """Return the unchanged value of the field, or None."""
        return self.values.get(name)

    def line(self, *path: str | int) -> int:
        """Return the line of a field."""
        return self.document.line(*path) if self.document else 1

    def _typed(self, name: str, kind: Callable[[Any], bool], expected: str) -> Any:
        value = self.values.get(name)
        if value is not None and not kind(value):
            self._fail(f"'{name}' must be {expected}", name)
            return None
        return value

    def text(self, name: str) -> str | None:
        """Return a text that is not empty, or None."""
        value = self._typed(
            name,
            lambda v: isinstance(v, str) and bool(v.strip()) and "\0" not in v,
            "a text, not empty",
        )
        return None if value is None else str(value)

    def names(self, name: str) -> list[str]:
        """Return a list of texts; empty when the field is not there."""
        return list(dict.fromkeys(self._typed(name, _is_names, "a list of texts") or ()))

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, which may be empty and equal; empty when it is anything else."""
        for number, text in enumerate(listed := self.values[name]):
            if not isinstance(text, str) or "\0" in text:
                self._fail(f"'{name}' must be a text or a list of texts", name, number)
                return []
        return list(listed)

    def whole(self, name: str, *, least: int, most: int = 2**63 - 1) -> int | None:
        """Return a whole number in a range, or None."""
        bounds = f"of at least {least}" if most == 2**63 - 1 else f"from {least} to {most:,}"
        value = self._typed(
            name,
            lambda v: isinstance(v, int) and not isinstance(v, bool) and least <= v <= most,
            f"a whole number {bounds}",
        )
        return None if value is None else int(value)

    def number(self, name: str, least: float, most: float) -> float | None:
        """Return a finite number in a range, or None."""
        value = self._typed(
            name,
            lambda v: (
                isinstance(v, int | float)
                and not isinstance(v, bool)
                and least <= v <= most
                and abs(v) < math.inf
            ),
            f"a number from {least:g} to {most:g}"
            if most < math.inf
            else f"a number of at least {least:g}",
        )
        try:
            return None if value is None else float(value)
        except OverflowError:
            self._fail(f"'{name}' is too large", name)
            return None

    def flag(self, name: str, default: bool) -> bool:
        """Return `true` or `false`, or the default."""
        value = self._typed(name, lambda v: isinstance(v, bool), "true or false")
        return default if value is None else bool(value)

    def choice(self, name: str, allowed: tuple[str, ...]) -> str | None:
        """Return one of the allowed texts, or None."""
        value = self._typed(
            name, lambda v: v in allowed, " or ".join(f"'{word}'" for word in allowed)
        )
        return None if value is None else str(value)

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a mapping that is valid as JSON; empty when the field is not there."""
        value = self._typed(name, lambda v: isinstance(v, dict), "a mapping")
        if not is_json(value):
            self._fail(f"'{name}' holds a number that is not finite", name)
            return {}
        return dict(value or {})

    def inner(self, name: str, known: Iterable[str]) -> Fields:
        """Return the fields of a mapping in a field; none when the field is not there."""
        mapping = self._typed(name, lambda v: isinstance(v, dict), "a mapping")
        document = self.document.at(name) if self.document and mapping is not None else None
        return Fields(document, known, collector=self.collector)

    def entries(self, name: str, known: Iterable[str], *, hint: str | None = None) -> list[Fields]:
        """Return the fields of each mapping in a list; none when the field is not there.

        `hint` says how to write another value.
        """
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            self._fail(f"'{name}' must be a list of mappings", name, hint=hint)
            return []
        assert self.document is not None
        known = tuple(known)
        return [
            Fields(self.document.at(name, number), known, collector=self.collector)
            for number in range(len(value))
        ]

    def tags(self) -> tuple[str, ...]:
        """Return tags, once each; unknown special tags are errors."""
        tags = tuple(self.names("tags"))
        for number, tag in enumerate(self.values["tags"] if tags else ()):
            if tag.startswith("_") and tag not in SPECIAL_TAGS:
                hint = "the special tags are " + ", ".join(SPECIAL_TAGS)
                self._fail(f"unknown special tag '{tag}'", "tags", number, hint=hint)
        return tags

    def options(self, name: str = "options") -> Options:
        """Return generation options."""
        inner = self.inner(name, OPTIONS)
        stop = inner.value("stop")
        if isinstance(stop, str):
            stop = [stop]
        if stop is not None and not _is_names(stop):
            inner._fail("'stop' must be a text or a list of texts", "stop")
            stop = None
        return Options(
            temperature=inner.number("temperature", 0, 2),
            max_output_tokens=inner.whole("maxOutputTokens", least=1),
            top_p=inner.number("topP", 0, 1),
            seed=inner.whole("seed", least=-(2**63)),
            stop=tuple(stop or ()),
            provider_options=inner.mapping("providerOptions") or None,
        )


def is_finite(number: float) -> bool:
    """Return whether a number is neither NaN nor outside the range of floats."""
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number can be larger
        return False


def is_json(value: Json) -> bool:
    """Return whether a value from YAML is valid as JSON: it has neither infinities nor NaN."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(is_json, value.values()))
    return not isinstance(value, list) or all(map(is_json, value))


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item for item in value)


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Suggest the nearest known name; None when none is near.

    `cutoff` is how alike they must be, 0..1.
    """
    names = {each.lower(): each for each in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=cutoff)
    return f"did you mean '{names[near[0]]}'?" if near else None


def _hint_elsewhere(name: str, known: Iterable[str], elsewhere: Mapping[str, str]) -> str | None:
    """Return the hint on a name of another tool, also misspelt if no known name is nearer."""
    letters = re.sub("[^a-z]", "", name.lower())
    if letters in elsewhere:
        return elsewhere[letters]
    if nearest(name, known):
        return None
    near = difflib.get_close_matches(letters, sorted(elsewhere), n=1, cutoff=_SLIP)
    return elsewhere[near[0]] if near else None


def suggest_file(path: str, known: Iterable[str], plural: str = "test files") -> str:
    """Suggest the file with the nearest name, whatever its folder and ending, or list all."""
    known = tuple(sorted(known))
    near = nearest_file(path, known)
    return f"did you mean '{near}'?" if near else _list(known, plural)


def nearest_file(path: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the file with the nearest name, whatever its folder and ending."""
    stems: dict[str, str] = {}
    for file in sorted(known):
        stems.setdefault(PurePosixPath(file).stem, file)
    near = difflib.get_close_matches(PurePosixPath(path).stem, stems, n=1, cutoff=cutoff)
    return stems[near[0]] if near else None


def suggest_beside(path: Path, written: str = "") -> str | None:
    """Suggest the nearest name in the folder of a path that does not exist, as it was `written`."""
    folder = PurePath(written).parent
    try:
        return nearest(
            str(folder / path.name), [str(folder / each.name) for each in path.parent.iterdir()]
        )
    except OSError:
        return None


def suggest(name: str, known: Iterable[str], plural: str) -> str:
    """Suggest the nearest known name, or list all."""
    return _suggest(name, tuple(sorted(known)), plural)


@lru_cache(maxsize=256)  # every file may have the same wrong name
def _suggest(name: str, known: tuple[str, ...], plural: str) -> str:
    return nearest(name, known) or _list(known, plural)


def _list(known: tuple[str, ...], plural: str) -> str:
    more = f" … ({len(known)} in all)" if len(known) > _LISTED else ""
    listed = ", ".join(known[:_LISTED]) + more
    return f"the {plural} are {listed}" if known else f"no {plural} are defined"
