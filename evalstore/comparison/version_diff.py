"""Describes the differences between two stored descriptions, and of texts word by word."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Literal, NamedTuple

from evalstore.core.display import plural, shorten
from evalstore.core.runs import Run, RunCandidate
from evalstore.core.values import RECORDED, AnswerRef, Json, SampleRef

_MAX_PAIRS = 400_000_000
"""Tokens (or lines) of one text times those of the other: 50 MB and 0.05 seconds."""
_IDEOGRAPHS = r"\u2e80-\u9fff\uac00-\ud7af"
_PUNCTUATION = r"!-/:-@\[-\^`{-~\u00a1-\u00bf\u2010-\u206f"
_TOKEN = rf"\n|[^\S\n]+|[{_IDEOGRAPHS}]|[{_PUNCTUATION}]|[^\s{_IDEOGRAPHS}{_PUNCTUATION}]+"
"""A line end, blanks, an ideograph, a punctuation mark or a word; every character is in a token.

It is compiled when texts are compared, for many commands never need it."""

Kind = Literal["same", "old", "new"]


class Stretch(NamedTuple):
    """A part of the text of one side, or of both."""

    kind: Kind
    text: str


class TextPiece(NamedTuple):
    """A part of a line, and whether the other text does not have it."""

    text: str
    differs: bool = False


Pieces = tuple[TextPiece, ...]


class ChangedLine(NamedTuple):
    """A line of a difference: ` ` is in both, `-` in the old text, `+` in the new one."""

    sign: str
    pieces: Pieces


class _Opcode(NamedTuple):
    """A range of the old sequence and the range of the new one that is equal or replaces it."""

    same: bool
    old: slice
    new: slice


def compare_words(was: str, now: str) -> list[Stretch]:
    """Return the stretches of both texts in reading order, the old one of a change first.

    Those that are `same` or `old` are the old text; those that are `same` or `new` the new one.
    What is too long between the ends that both share counts as replaced.
    """
    old, new = re.findall(_TOKEN, was), re.findall(_TOKEN, now)
    stretches: list[Stretch] = []
    for opcode in _opcodes(old, new):
        before, after = "".join(old[opcode.old]), "".join(new[opcode.new])
        if opcode.same:
            stretches.append(Stretch("same", before))
        else:
            stretches += Stretch("old", before), Stretch("new", after)
    return list(_join(stretches))


def compare_side_by_side(was: str, now: str) -> tuple[list[Pieces], list[Pieces]]:
    """Return the lines of both texts, with the words that differ."""
    stretches = compare_words(was, now)
    return _lines(stretches, "old"), _lines(stretches, "new")


def diff_lines(was: str, now: str, context: int = 3) -> list[list[ChangedLine]]:
    """Return the hunks in which two texts differ, each with some lines around it.

    Lines that replace others have the words that differ marked.
    """
    old, new = was.split("\n") if was else [], now.split("\n") if now else []
    opcodes = _opcodes(old, new)
    hunks: list[list[ChangedLine]] = []
    hunk: list[ChangedLine] = []
    for number, opcode in enumerate(opcodes):
        if not opcode.same:
            hunk += _changed_lines(old[opcode.old], new[opcode.new])
            continue
        same = [ChangedLine(" ", (TextPiece(line),)) for line in new[opcode.new]]
        if not hunk:
            same = same[max(0, len(same) - context) :]
        elif number + 1 == len(opcodes):
            same = same[:context]
        elif len(same) > 2 * context:
            hunks.append([*hunk, *same[:context]])
            hunk, same = [], same[len(same) - context :]
        hunk += same
    if any(line.sign != " " for line in hunk):
        hunks.append(hunk)
    return hunks


def shared_ends(was: Sequence[str], now: Sequence[str]) -> tuple[int, int]:
    """Return how many elements two lists share at their start, and behind that at their end."""
    shortest = min(len(was), len(now))
    start = 0
    while start < shortest and was[start] == now[start]:
        start += 1
    end = 0
    while end < shortest - start and was[-1 - end] == now[-1 - end]:
        end += 1
    return start, end


def _changed_lines(old: Sequence[str], new: Sequence[str]) -> list[ChangedLine]:
    if old and new:
        before, after = compare_side_by_side("\n".join(old), "\n".join(new))
    else:
        before = [(TextPiece(line, True),) for line in old]
        after = [(TextPiece(line, True),) for line in new]
    return [
        *(ChangedLine("-", line) for line in before),
        *(ChangedLine("+", line) for line in after),
    ]


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[_Opcode]:
    """Return the ranges that are the same and those that differ, in turns.

    What is between the shared ends counts as one range that differs when it has more pairs.
    """
    start, end = shared_ends(old, new)
    middle = _Opcode(False, slice(start, len(old) - end), slice(start, len(new) - end))
    opcodes = [_Opcode(True, slice(0, start), slice(0, start))] if start else []
    old_count, new_count = len(old) - start - end, len(new) - start - end
    if old_count * new_count > _MAX_PAIRS or (old_count + new_count and old_count * new_count < 2):
        opcodes.append(middle)
    elif old_count or new_count:
        opcodes += _match(old[middle.old], new[middle.new], start)
    if end:
        opcodes.append(
            _Opcode(True, slice(len(old) - end, len(old)), slice(len(new) - end, len(new)))
        )
    return opcodes


def _match(old: Sequence[str], new: Sequence[str], offset: int) -> Iterator[_Opcode]:
    from rapidfuzz.distance import Indel  # takes a moment, and most pages do not need it

    a = b = offset
    for block in Indel.opcodes(old, new).as_matching_blocks():
        start_old, start_new = block.a + offset, block.b + offset
        if (a, b) != (start_old, start_new):
            yield _Opcode(False, slice(a, start_old), slice(b, start_new))
        a, b = start_old + block.size, start_new + block.size
        if block.size:
            yield _Opcode(True, slice(start_old, a), slice(start_new, b))


def _join(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """Join stretches of one kind that follow each other, and leave out empty ones.

    A single blank between two replacements belongs to them: words that change together are
    read together.
    """
    parts = [stretch for stretch in stretches if stretch.text]
    changed: dict[Kind, list[str]] = {"old": [], "new": []}
    same: list[str] = []

    def flush() -> Iterator[Stretch]:
        for kind, texts in changed.items():
            if texts:
                yield Stretch(kind, "".join(texts))
                texts.clear()

    following = [*(part.kind for part in parts[1:]), "same"]
    for (kind, text), after in zip(parts, following, strict=False):
        if kind != "same":
            if same:
                yield Stretch("same", "".join(same))
                same.clear()
            changed[kind].append(text)
        elif text == " " and all(changed.values()) and after != "same":
            for texts in changed.values():
                texts.append(text)
        else:
            yield from flush()
            same.append(text)
    yield from flush()
    if same:
        yield Stretch("same", "".join(same))


def _lines(stretches: Iterable[Stretch], side: Kind) -> list[Pieces]:
    """Return the lines of the text of one side."""
    lines: list[list[TextPiece]] = [[]]
    for kind, text in stretches:
        if kind not in ("same", side):
            continue
        first, *others = text.split("\n")
        if first:
            lines[-1].append(TextPiece(first, kind != "same"))
        lines += [[TextPiece(line, kind != "same")] if line else [] for line in others]
    return [tuple(line) for line in lines]


_SHOWN = 60
_INLINE = 64
"""The most characters of two values that are shown in one line."""
_MOST_EDITS = 5
"""The most changed lines of a text that are listed."""
_TEXT_LINE = re.compile(r"\bline \d+(?: in \[.*| \(and \d+ more changes?\))?(?:;|$)", re.DOTALL)
"""The end of the subject of an edited line, also with its row or in a reason that says more."""
_LIST_ITEM = re.compile(r"\s*(?:[-*+#>]+|\d+[.)])\s")

CODE_CHANGED = "the candidate's code changed"
"""The start of the difference between two versions of a model that is an application."""
RECORDED_ANSWER = "recorded answer"
"""That of the answers of a row that were recorded elsewhere."""
VERDICTS_WANTED = "evaluationsPerEvaluator"
"""The setting of how many verdicts each judge gives."""
TOKEN_LIMIT = "maxTestOutputTokens"
"""The setting of the most tokens of an answer."""
NUMBERS = "temperature", "seed", "repetitions", "attempts", "answers", VERDICTS_WANTED, TOKEN_LIMIT
"""What is followed by its values without a colon: `temperature none -> 0.5`."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference: its subject, and the old and the new value."""

    subject: str = field(metadata={"json_name": "what"})
    was: str | None = None
    now: str | None = None

    @property
    def fits(self) -> bool:
        """Return whether both values can be shown in one line.

        Not those of a line of a text that is new, removed, or an item of a list: with its dash or
        number sign it would not read as a value.
        """
        if _TEXT_LINE.search(self.subject):
            sides = (self.was, self.now)
            if None in sides or any(_LIST_ITEM.match(side or "") for side in sides):
                return False
        return len(self.was or "") + len(self.now or "") <= _INLINE

    def __str__(self) -> str:
        if (self.was is None and self.now is None) or not self.fits:
            return self.subject
        old = "not set" if self.was is None else shorten_line(self.was)
        now = "removed" if self.now is None else shorten_line(self.now)
        if old == now and self.was and self.now:  # they differ in white space alone
            old, now = json.dumps(self.was), json.dumps(self.now)
        joint = " " if self.subject.rpartition(" ")[2] in NUMBERS else ": "
        return f"{self.subject}{joint}{old} -> {now}"


def in_place(kind: str, name: str, former: str | None = None) -> Difference:
    """Return that a version of a kind is used where another one was; `former` is its name."""
    return Difference(f"{kind} {name} in place of {former or f'another {kind}'}")


Find = Callable[[str, str], Json]
"""From a kind and an id to the content; None when it is not available."""
Name = Callable[[str, str], str | None]
"""From a kind and an id to the current name of the version."""


def shorten_line(text: str, width: int = _SHOWN) -> str:
    """Return a text in one short line."""
    line = " ".join((text or "nothing").split())
    return line if len(line) <= width else line[: width - 1] + "…"


def differ_tests(was: Json, now: Json, find: Find, name: Name) -> list[Difference]:
    """Return the differences between two test versions."""
    differences = [*_messages(was.get("messages", []), now.get("messages", []))]

    def differ(part: str) -> bool:
        return bool(was.get(part) != now.get(part))

    if differ("specialTags"):
        differences += _sets("special tag", was.get("specialTags", []), now.get("specialTags", []))
    if differ("tools"):
        differences += _versions("tool", was.get("tools", []), now.get("tools", []), find, name)
    if differ("schema"):
        before, after = ([*filter(None, [side.get("schema")])] for side in (was, now))
        differences += _versions("schema", before, after, find, name)
    if differ("options"):
        differences += (
            Difference(f"option {path}", old, new)
            for path, old, new in _paths(was.get("options", {}), now.get("options", {}))
        )
    return differences


def differ_prompts(was: Json, now: Json) -> list[Difference]:
    """Return the differences between two prompt versions."""
    return [
        *_messages(was.get("messages", []), now.get("messages", []), is_prompt=True),
        *_sets("special tag", was.get("specialTags", []), now.get("specialTags", [])),
    ]


def nowhere(_kind: str, _id: str) -> Json:
    """Return None, as for a version without a content and without a name."""
    return None


def differ_evaluations(
    was: Json, now: Json, find: Find = nowhere, name: Name = nowhere
) -> list[Difference]:
    """Return the differences between two evaluation versions."""
    texts = was.get("instructions"), now.get("instructions")
    differences = list(_content(f"{part_change('instructions', *texts)}:", *texts))
    old, new = was.get("checks", []), now.get("checks", [])
    pairs = pair_checks(old, new)
    for number, check in enumerate(new):
        if number not in pairs:
            differences.append(Difference(f"check {number + 1} ({check['type']}) is new"))
        elif old[pairs[number]] != check:
            differences.append(_in_check(number, old[pairs[number]], check, find, name))
    kept = [pairs[number] for number in sorted(pairs)]
    for number in sorted({*range(len(old))}.difference(kept)):
        differences.append(Difference(f"check {number + 1} ({old[number]['type']}) is gone"))
    if kept != sorted(kept):
        differences.append(Difference("order of the checks"))
    return differences


def evaluation_parts(was: Json, now: Json) -> tuple[str, ...]:
    """Return which of instructions and checks differ between two evaluation versions."""
    return tuple(part for part in ("instructions", "checks") if was.get(part) != now.get(part))


def part_change(part: str, was: object, now: object) -> str:
    """Return that a part of a case was added, removed or changed."""
    return f"{part} {'added' if not was else 'changed' if now else 'removed'}"


def number_change(subject: str, was: float | None, now: float | None) -> Difference:
    """Return that a number changed: `temperature none -> 0.5`, with `none` where there is none."""
    values = ("none" if it is None else f"{it}".removesuffix(".0") for it in (was, now))
    return Difference(subject, *values)


def _in_check(number: int, was: Json, now: Json, find: Find, name: Name) -> Difference:
    """Return the difference between two versions of a check; `number` is that of the new one.

    A check of another type differs as a whole.
    """
    file = was.get("file"), now.get("file")
    if None not in file and file[0] != file[1] and file[0]["path"] == file[1]["path"]:
        return Difference(f"file {file[1]['path']} changed")
    place = f"check {number + 1} changed"
    if was["type"] != now["type"]:
        return Difference(place, as_written(was, now), as_written(now, was))
    change = _first_change(was, now, find, name)
    return replace(change, subject=f"{place}: {change.subject}")


def _first_change(was: Json, now: Json, find: Find, name: Name) -> Difference:
    """Return the first difference between two versions of a check, or between its prompts."""
    changes = (change for change in _paths(was, now) if not change[0].startswith(BOUND))
    path, before, after = next(changes, ("which answers it looks at", None, None))
    if path.startswith("check.") and was["check"].get("type") != now["check"].get("type"):
        was, now = was["check"], now["check"]
        return Difference("check", as_written(was, now), as_written(now, was))
    path = as_setting(path.removeprefix("given."), now)
    if path.startswith("prompts["):
        former, present = (name("prompt", id) if id else None for id in (before, after))
        if former and present and former != present:
            return in_place("judge prompt", present, former)
        old, new = (find("prompt", id) if id else None for id in (before, after))
        inner = differ_prompts(old, new) if old and new else []
        return (
            replace(inner[0], subject=f"judge prompt, {inner[0].subject}")
            if inner
            else Difference("judge prompt")
        )
    if path == "schema" and isinstance(was["schema"], str) and isinstance(now["schema"], str):
        return Difference(path)  # the values are ids
    return Difference(path, before, after)


def differ_models(was: Json, now: Json) -> list[Difference]:
    """Return the differences between two model versions; recorded answers differ in their texts."""
    if all(_option(version, "answers") and version["code"] == RECORDED for version in (was, now)):
        return [Difference(RECORDED_ANSWER, recorded_text(was), recorded_text(now))]
    old_files, new_files = (_files_of(version) for version in (was, now))
    changed = [
        Difference(f"{CODE_CHANGED}: {path}{change}")
        for path in sorted({*old_files, *new_files})
        for change in (
            " is new" if path not in old_files else " is gone" if path not in new_files else "",
        )
        if old_files.get(path) != new_files.get(path)
    ]
    return changed + [
        Difference(f"model {path.replace('providerOptions.', 'option ', 1)}", old, new)
        for path, old, new in _paths(*map(_as_model_file, (was, now)))
        if path.partition(".")[0] != "files"
    ]


def _as_model_file(version: Json) -> Json:
    """Return a model version with its options as fields, as a model file has them."""
    if not isinstance(version, dict):
        return version
    fields = dict(version)
    return {"providerOptions": {}, **(fields.pop("options", None) or {}), **fields}


def _files_of(version: Json) -> dict[str, str]:
    """Return the hashes of the files of an application, by path; empty for another model."""
    files = _option(version, "files")
    return files if isinstance(files, dict) else {}


def _option(version: Json, name: str) -> Json:
    """Return an option of a model; None when there is none, or the version is not that of one."""
    options = version.get("options") if isinstance(version, dict) else None
    return options.get(name) if isinstance(options, dict) else None


def _messages(was: list[Json], now: list[Json], *, is_prompt: bool = False) -> Iterator[Difference]:
    """Yield how messages differ; the only one of a prompt needs no number."""
    for number in range(max(len(was), len(now))):
        place = f"message {number + 1}"
        if number >= len(was):
            yield Difference(f"{place} ({now[number]['role']}) is new")
        elif number >= len(now):
            yield Difference(f"{place} ({was[number]['role']}) is gone")
        elif was[number]["role"] != now[number]["role"]:
            yield Difference(f"{place} role", was[number]["role"], now[number]["role"])
        else:
            texts = (message[number].get("content") for message in (was, now))
            yield from _content("" if is_prompt and len(now) < 2 else f"{place},", *texts)


def _content(place: str, was: Json, now: Json) -> Iterator[Difference]:
    if was == now:
        return
    before, after = _flat(was), _flat(now)
    old_files, new_files = (
        {part["path"]: part["file"] for part in parts if "file" in part}
        for parts in (content if isinstance(content, list) else () for content in (was, now))
    )
    changed = [path for path, id in new_files.items() if old_files.get(path, id) != id]
    for path in changed:
        yield Difference(f"file {path} changed")
    if before != after:
        changes = changed_lines(before, after)
        for line, old, new in changes[:_MOST_EDITS]:
            yield Difference(f"{place} line {line}".lstrip(), old, new)
        if len(changes) > _MOST_EDITS:
            rest = plural(len(changes) - _MOST_EDITS, "more changed line")
            yield Difference(f"{place} {rest}".lstrip())
    elif not changed:  # the same text in other parts
        yield Difference(f"{place.rstrip(':,').removesuffix(' changed') or 'text'} changed")


def _flat(content: Json) -> str:
    if not isinstance(content, list):
        return content or ""
    texts: list[str] = []
    for part in content:
        if "answers" in part:
            texts.append(
                str(AnswerRef(tuple((session, turn) for session, turn in part["answers"])))
            )
        elif "sample" in part:
            texts.append(str(SampleRef(part["sample"])))
        else:
            texts.append(part["text"] if "text" in part else f"[file {part['path']}]")
    return "".join(texts)


def changed_lines(was: str, now: str) -> list[tuple[int, str | None, str | None]]:
    """Return the lines that differ, each with its number from 1, the old and the new line.

    The number is that of the new line, of a line that is gone the old one. Lines that are blank on
    both sides count only if nothing else differs.
    """
    if "\n" not in was and "\n" not in now:
        return [(1, was, now)] if was != now else []
    old, new = was.split("\n"), now.split("\n")
    changes: list[tuple[int, str | None, str | None]] = []
    for is_same, gone, come in _opcodes(old, new):
        pairs = () if is_same else zip_longest(old[gone], new[come])
        for number, (before, after) in enumerate(pairs, 1):
            start = gone.start if after is None else come.start
            changes.append((start + number, before, after))
    return [
        change for change in changes if any((line or "").strip() for line in change[1:])
    ] or changes


def _sets(subject: str, was: list[str], now: list[str]) -> Iterator[Difference]:
    for gone in sorted(set(was) - set(now)):
        yield Difference(f"{subject} {gone} is gone")
    for new in sorted(set(now) - set(was)):
        yield Difference(f"{subject} {new} is new")


def _versions(
    kind: str, was: list[str], now: list[str], find: Find, name: Name
) -> Iterator[Difference]:
    """Yield the differences between tools, paired by name, or between schemas, at most one each."""

    def by_name(ids: list[str]) -> dict[str, tuple[str, Json]]:
        versions: dict[str, tuple[str, Json]] = {}
        for id in ids:
            content = find(kind, id) or {}
            key = str(content.get("name", ""))
            versions[f"{key} {id}" if key in versions else key] = (id, content)
        return versions

    old = by_name([id for id in was if id not in now])
    new = by_name([id for id in now if id not in was])
    for key, (id, content) in new.items():
        earlier = name(kind, old[key][0]) if key in old else None
        shown = name(kind, id) or earlier or key or id[:8]
        if key not in old:
            yield Difference(f"{kind} {shown} is new")
        elif earlier and earlier != shown:
            yield in_place(kind, shown, earlier)
        else:
            versions = [old[key][1], content]
            if kind == "schema":
                versions = [version.get("schema", {}) for version in versions]
            path, *values = next(_paths(*versions), ("",))
            changed = f"{kind} {shown} changed"
            yield Difference(f"{changed}: {path}", *values) if path else Difference(changed)
    for key, (id, _) in old.items():
        if key not in new:
            yield Difference(f"{kind} {name(kind, id) or key or id[:8]} is gone")


def _paths(was: Json, now: Json, path: str = "") -> Iterator[tuple[str, str | None, str | None]]:
    """Yield every difference between two JSON values: path, old and new value."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted({*was, *now}):
            place = f"{path}.{key}" if path else key
            if key in was and key in now:
                yield from _paths(was[key], now[key], place)
            else:
                old = _value(was[key]) if key in was else None
                yield place, old, _value(now[key]) if key in now else None
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for number, (old, new) in enumerate(zip(was, now, strict=True)):
            yield from _paths(old, new, f"{path}[{number}]")
    elif was != now or isinstance(was, bool) != isinstance(now, bool):
        yield path or "content", _value(was), _value(now)


def _value(value: Json) -> str | None:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def recorded_text(version: Json) -> str:
    """Return the recorded answers of a model version, joined; empty if it has none in a list."""
    answers = _option(version, "answers")
    return "\n".join(map(str, answers)) if isinstance(answers, list) else ""


_MOST_LINES = 2_000
"""The most lines that are compared with each other."""


def unified(was: str, now: str, was_name: str, now_name: str) -> list[str]:
    """Return a unified diff of two texts, line by line, without line ends.

    Texts that differ in more than `_MOST_LINES` have one changed block.
    """
    old, new = was.splitlines(), now.splitlines()
    start, end = shared_ends(old, new)
    if min(len(old), len(new)) - start - end <= _MOST_LINES:
        return list(difflib.unified_diff(old, new, was_name, now_name, lineterm=""))
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    return [
        f"--- {was_name}",
        f"+++ {now_name}",
        f"@@ -{start + 1},{len(gone)} +{start + 1},{len(come)} @@",
        *(f"-{line}" for line in gone),
        *(f"+{line}" for line in come),
    ]


# --- describes a check of a stored evaluation as its author has written it


BOUND = ("turns", "templates", "data")
"""Fields of a check that its author has not written."""
_HIDDEN = (*BOUND, "type", "revision", "given", "prompts")
"""Fields of a check that are not shown with its type."""
_MAIN = ("expected", "pattern", "check")
"""Settings of checks that are shown without their names, as in `type: value`."""
_MAIN_PATH = re.compile(r"(expected|pattern)(?:\[(\d+)\])?([.\[].*)?", re.DOTALL)
"""The place of a setting that is written behind the type, an element of it, and what is in that."""


def as_written(check: Json, other: Json) -> str:
    """Return a check in one line: its type, and the settings that `other` has not alike."""
    settings, others = (_settings_of(each) for each in (check, other))
    kind = str(check.get("type", ""))
    main = (kind, *_MAIN)
    own = [name for name, value in settings.items() if name not in others or others[name] != value]
    words = [
        _setting_text(settings[name]) if name in main else f"{name} {_setting_text(settings[name])}"
        for name in sorted(own, key=lambda name: (name not in main, name))
    ]
    return " ".join([kind, ", ".join(words)]).strip()


def _setting_text(value: Json) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) and "path" in value:  # a file with the id of its content
        return str(value["path"])
    if isinstance(value, dict) and "type" in value:  # a check inside another one
        return as_written(value, {})
    return shorten(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _settings_of(check: Json) -> dict[str, Json]:
    """Return the settings of a check that its author has written, without the ids of versions."""
    whole = {**check, **check.get("given", {})}
    return {
        name: value
        for name, value in whole.items()
        if name not in _HIDDEN and not (name == "schema" and isinstance(value, str))
    }


def as_setting(path: str, check: Json) -> str:
    """Return a path in a check as its author has written it: the type in place of `expected[0]`."""
    check = {**check, **check.get("given", {})}
    if path.startswith("check."):
        return as_setting(path.removeprefix("check."), check["check"])
    match = _MAIN_PATH.fullmatch(path)
    if match is None:
        return path
    name, number, rest = match.groups()
    if number and not rest:
        is_only = len(check[name]) == 1
        return check["type"] if is_only else f"{check['type']}, value {int(number) + 1}"
    return f"{check['type']}{path.removeprefix(name)}"


_MOST_COMPARED = 2_500
"""Of more pairs of checks of one type, the checks are paired in their order."""
_LENGTH_COMPARED = 2_000
"""The characters of a check that are compared."""


def pair_checks(was: Sequence[Json], now: Sequence[Json]) -> dict[int, int]:
    """Return the number of the old check for each new one that has a partner; both from 0.

    Equal checks are partners; of the rest those of one type, the most similar first; then those
    with the same number, as one check that replaces another.
    """
    before, after = ([json.dumps(check, sort_keys=True) for check in each] for each in (was, now))
    pairs: dict[int, int] = {}
    types = ([check["type"] for check in each] for each in (was, now))
    for old_keys, new_keys in ((before, after), types, (range(len(was)), range(len(now)))):
        taken = {*pairs.values()}
        waiting: dict[object, tuple[list[int], list[int]]] = {}
        for number, key in enumerate(old_keys):
            if number not in taken:
                waiting.setdefault(key, ([], []))[0].append(number)
        for number, key in enumerate(new_keys):
            if number not in pairs and key in waiting:
                waiting[key][1].append(number)
        for old, new in waiting.values():
            if old_keys is not before and 1 < len(old) * len(new) <= _MOST_COMPARED:
                pairs |= _most_similar(old, new, before, after)
            else:
                pairs |= zip(new, old, strict=False)
    return pairs


def _most_similar(
    old: Sequence[int], new: Sequence[int], before: Sequence[str], after: Sequence[str]
) -> dict[int, int]:
    """Return the pairs of new and old checks of one type, the most similar first."""
    from rapidfuzz.distance import Indel  # takes a moment, and most edits do not need it

    def likeness(pair: tuple[int, int]) -> float:
        texts = (text[:_LENGTH_COMPARED] for text in (before[pair[0]], after[pair[1]]))
        return Indel.normalized_similarity(*texts)

    pairs: dict[int, int] = {}
    for i, n in sorted(((i, n) for n in new for i in old), key=likeness, reverse=True):
        if n not in pairs and i not in pairs.values():
            pairs[n] = i
    return pairs


# --- the candidates of two runs


Candidates = Mapping[str, "RunCandidate"]
"""The candidates of a run by display id."""


def candidates_after(before: Candidates, run: Run) -> Candidates:
    """Return the candidates as of a run; one that was limited to some of them removes none."""
    here = {candidate.id: candidate for candidate in run.candidates}
    return {**before, **here} if "models" in run.selection else here


def differ_candidates(
    was: Candidates,
    now: Candidates,
    shown: Iterable[str],
    find: Find,
    *,
    with_temperature: bool = True,
) -> Iterator[tuple[str, Difference]]:
    """Yield the differences between the candidates of two runs, of those in `shown`, with ids.

    The temperature does not matter to cases that have their own.
    """
    listed = set(shown)
    for id in dict.fromkeys((*now, *was)):
        if id not in listed:
            continue
        if id not in was:
            yield id, Difference(f"new candidate {id}")
        elif id not in now:
            yield id, Difference(f"candidate {id} removed")
        else:
            old = was[id] if with_temperature else was[id]._replace(temperature=now[id].temperature)
            yield from ((id, each) for each in differ_candidate(old, now[id], find))


def differ_candidate(was: RunCandidate, now: RunCandidate, find: Find) -> Iterator[Difference]:
    """Yield how the definition of a candidate changed: its model, then its temperature."""
    if was.model != now.model:
        old, new = (find("model", each.model) or {} for each in (was, now))
        for difference in differ_models(old, new):
            yield replace(difference, subject=f"{now.id}: {difference.subject}")
    if was.temperature != now.temperature:
        yield number_change(f"temperature of {now.id}", was.temperature, now.temperature)
