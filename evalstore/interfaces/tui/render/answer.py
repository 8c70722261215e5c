"""An answer as lines and as a file: its verdicts, the conversation, the criteria and its facts."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from evalstore.comparison.version_diff import compare_side_by_side
from evalstore.core.display import (
    BLANK,
    SIGNS,
    StyledLine,
    StyledSpan,
    TextBlock,
    case_name,
    clip,
    heading,
    marked_spans,
    plural,
    safe,
    short_names,
    text_lines,
    verdict_span,
)
from evalstore.core.errors import EvalstoreError, NotRunError
from evalstore.core.values import Result
from evalstore.exchange.exports.formats import csv_lines, markdown_lines
from evalstore.files.atomic_write import write_whole
from evalstore.files.processes.limited_calls import LimitReached, call
from evalstore.files.yaml12 import parse_json
from evalstore.interfaces.tui.case_listing import CaseNavigator
from evalstore.interfaces.tui.page_lines import TitlePart
from evalstore.interfaces.tui.render.verdicts import (
    MIN_SHARED,
    badge_spans,
    question_lines,
    result_cell,
)
from evalstore.results.answer.answer import AnswerView
from evalstore.results.answer.answer_text import (
    check_text,
    conversation,
    criteria,
    footer_lines,
    judgement_lines,
    missing_lines,
    note_lines,
    other_judgements,
    own_judgements,
    reasoning,
    together_lines,
)
from evalstore.results.answer.judgements import Judgement, MixedAttempts, failed_text
from evalstore.results.labels import LabelIndex
from evalstore.results.table.cases import CaseRow
from evalstore.results.value_text import LONGEST, link_target, parse_markdown, shows_all

_WIDEST = 60
"""Columns of a table; the rows of a wider one are shown cell by cell."""
_STYLES = {"strong": "strong", "em": "emphasis", "s": "faint", "link": "link"}
_BULLET = "•"

if TYPE_CHECKING:
    from evalstore.results.value_text import Token


class RenderedText(NamedTuple):
    """A text that is not shown as it is written."""

    lines: list[StyledLine]
    is_markdown: bool
    """Else it is JSON."""


def render_text(text: str) -> RenderedText | None:
    """Render a text that is Markdown or JSON; None: it is shown as it is written."""
    if len(text) > LONGEST:
        return None
    if text[:1] in ("{", "["):
        try:
            parse_json(text)
        except (ValueError, RecursionError):
            pass
        else:
            return RenderedText(code_lines(text, "json"), is_markdown=False)
    tokens = parse_markdown(text)
    if tokens is None:
        return None
    lines = _Renderer().render(tokens)
    is_whole = shows_all(text, (line.text for line in lines))
    return RenderedText(lines, is_markdown=True) if is_whole else None


class _Renderer:
    """Makes lines of the tokens of one text."""

    def __init__(self) -> None:
        self._lines: list[StyledLine] = []
        self._indent = 0
        self._quotes = 0
        self._items: list[str] = []
        """What stands in front of the next line of each open list item."""

    def render(self, tokens: Sequence[Token]) -> list[StyledLine]:
        """Render the document to lines, without blank ones at the ends."""
        position = 0
        while position < len(tokens):
            token = tokens[position]
            if token.type == "table_open":
                start = position
                while tokens[position].level != token.level or tokens[position].nesting >= 0:
                    position += 1
                self._add_table(tokens[start:position])
            else:
                heading = position and tokens[position - 1].type == "heading_open"
                self._add(token, "heading" if heading else "")
            position += 1
        while self._lines and self._lines[-1] == BLANK:
            self._lines.pop()
        return self._lines

    def _add(self, token: Token, colour: str) -> None:
        match token.type:
            case "inline":
                for spans in _inline_lines(token.children or (), colour):
                    self._put(spans)
            case "fence" | "code_block":
                info = token.info.strip()
                if info:
                    self._put([StyledSpan(safe(info), "faint")])
                language = info.partition(" ")[0]
                for line in code_lines(token.content.removesuffix("\n"), language):
                    self._put([StyledSpan("  "), *line.spans])
                self._end_block()
            case "hr":
                self._put([StyledSpan("─" * 20, "faint")])
                self._end_block()
            case "blockquote_open":
                self._quotes += 1
            case "blockquote_close":
                self._quotes -= 1
            case "list_item_open":
                sign = f"{token.info}{token.markup}" if token.info else _BULLET
                self._items.append(f"{sign} ")
                self._indent += cell_len(self._items[-1])
            case "list_item_close":
                self._indent -= cell_len(self._items.pop())
            case "heading_close" | "bullet_list_close" | "ordered_list_close":
                self._end_block()
            case "paragraph_close":
                if not token.hidden:
                    self._end_block()

    def _put(self, spans: Sequence[StyledSpan]) -> None:
        """Add a line; the first one of a list item begins with its bullet or number."""
        marks: list[StyledSpan] = []
        indent = self._indent
        for number, sign in enumerate(self._items):
            if not sign.isspace():
                indent -= sum(map(cell_len, self._items[number:]))
                marks += (StyledSpan(each, "faint") for each in self._items[number:])
                self._items = [
                    *self._items[:number],
                    *(" " * cell_len(each) for each in self._items[number:]),
                ]
                break
        marks += [StyledSpan("│ " * self._quotes, "faint")] if self._quotes else ()
        hang = sum(cell_len(mark.text) for mark in marks)
        self._lines.append(StyledLine((*marks, *spans), indent, hang))

    def _end_block(self) -> None:
        if self._lines and self._lines[-1] != BLANK:
            self._lines.append(BLANK)

    # --- tables

    def _add_table(self, tokens: Sequence[Token]) -> None:
        rows: list[list[list[StyledSpan]]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                colour = "" if len(rows) > 1 else "strong"
                lines = _inline_lines(token.children or (), colour)
                rows[-1].append([span for line in lines for span in line])
        widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
        head, *body = rows
        if sum(widths) + 3 * len(widths) > _WIDEST:  # as lists of their cells
            if not body:
                self._put(_joined(head))
            for number, row in enumerate(body):
                if number:
                    self._end_block()
                for title, cell in zip(head, row, strict=True):
                    self._put([*title, StyledSpan(": ", "faint"), *cell])
        else:
            for number, row in enumerate(rows):
                cells = zip(row, widths, strict=True)
                self._put(
                    _joined(
                        [*cell, StyledSpan(" " * (width - _width(cell)))] for cell, width in cells
                    )
                )
                if not number:
                    rule = "─┼─".join("─" * width for width in widths)
                    self._put([StyledSpan(rule, "faint")])
        self._end_block()


def _inline_lines(tokens: Iterable[Token], colour: str) -> Iterator[list[StyledSpan]]:
    """Yield the lines of a paragraph: line breaks stay as they are written."""
    line: list[StyledSpan] = []
    colours = [colour]
    links: list[str] = []
    for token in tokens:
        name, _, end = token.type.rpartition("_")
        if token.type in ("softbreak", "hardbreak"):
            yield line
            line = []
        elif token.type == "image":
            alt = f"{token.content}: " if token.content else ""
            line.append(StyledSpan(f"[image {safe(alt)}{safe(link_target(token, 'src'))}]", "link"))
        elif end == "open" and name in _STYLES:
            colours.append(_STYLES[name])
            if name == "link":
                links.append(link_target(token, "href"))
        elif end == "close" and name in _STYLES:
            colours.pop()
            if name == "link" and (target := links.pop()) != (line[-1].text if line else ""):
                line.append(StyledSpan(f" ({safe(target)})", "faint"))
        elif token.content:
            style = "code" if token.type == "code_inline" else colours[-1]
            line.append(StyledSpan(safe(token.content, lines=True).expandtabs(4), style))
    yield line


def _width(spans: Iterable[StyledSpan]) -> int:
    return sum(cell_len(span.text) for span in spans)


def _joined(cells: Iterable[Sequence[StyledSpan]]) -> list[StyledSpan]:
    """Join the cells of a row with lines between them."""
    spans: list[StyledSpan] = []
    for number, cell in enumerate(cells):
        spans += [StyledSpan(" │ ", "faint")] if number else ()
        spans += cell
    return spans


# --- code, and the colours of JSON


_JSON = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*+"(?=\s*:))|(?P<string>"(?:[^"\\]|\\.)*+"?)'
    r"|(?P<number>-?\d[\d.eE+-]*)|(?P<keyword>\b(?:true|false|null)\b)",
    re.DOTALL,
)
_COLOURS = {
    "key": "code-keyword",
    "string": "code-string",
    "number": "code-number",
    "keyword": "code-keyword",
}


def code_lines(code: str, language: str) -> list[StyledLine]:
    """Return code as lines; JSON has colours."""
    lines: list[list[StyledSpan]] = [[]]
    for colour, text in _json_pieces(code) if language.lower() == "json" else [("code", code)]:
        for number, part in enumerate(text.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append(StyledSpan(safe(part, lines=True).expandtabs(4), colour))
    return [StyledLine(tuple(spans)) for spans in lines]


def _json_pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of JSON, each after its colour."""
    at = 0
    for found in _JSON.finditer(text):
        yield "", text[at : found.start()]
        yield _COLOURS[found.lastgroup or ""], found[0]
        at = found.end()
    yield "", text[at:]


MISSING = "{page.run} gets what is missing, and shows the price first."
_INDENT = 2
_REASONS = 150
"""Characters of all reasons in one line: two rows of a narrow terminal."""
_LINES = 3
"""Lines of a question and of instructions above two answers."""


def place_lines(
    case: CaseRow,
    result: Result,
    attempt: int,
    labels: LabelIndex,
    mixed: MixedAttempts | None = None,
    gone: str = "",
) -> Iterator[StyledLine]:
    """Yield the case, and the verdict on a candidate; `attempt` is the answer's number, from 0.

    `mixed` are the attempts if they differ, and `gone` says that the files lack the case.
    """
    yield heading("  ".join((case_name(case.file, case.row, case.prompt), *case.tags)))
    cell = result_cell(result, labels)
    facts = [] if result.score is None else [f"score {result.score:g}"]
    facts += [failed_text(mixed.total - mixed.passed, mixed.total)] if mixed else []
    if result.required_answers > 1 or len(result.sessions) > 1:
        have = len(result.sessions)
        facts.append(f"answer {attempt + 1} of {have}" if have else "no answer")
        facts += [f"{result.required_answers} wanted"] if have < result.required_answers else []
    spans = (
        StyledSpan(cell.text, cell.colour),
        StyledSpan(f"  {safe(result.model)}"),
        StyledSpan(safe("".join(f"  {fact}" for fact in facts)), "faint"),
    )
    yield badge_spans(StyledLine(spans))
    if gone:
        yield from text_lines(gone, "pending")


def attempt_of(view: AnswerView, result: Result) -> int:
    """Return the number of an answer among those of its result, from 0."""
    return result.sessions.index(view.id) if view.id in result.sessions else 0


def answer_lines(
    view: AnswerView, files: Mapping[str, Sequence[StyledLine]], *, rendered: bool = False
) -> Iterator[StyledLine]:
    """Yield the conversation and how it is judged.

    Answers that are Markdown are `rendered` as such. Below messages are their `files`, images and
    texts: lines by id.
    """
    if not view.conversation:
        yield BLANK
        yield from text_lines("What was asked is not in the store.", "faint")
    current, _ = criteria(view, SIGNS)
    for block in (*conversation(view), *current, *reasoning(own_judgements(view))):
        yield BLANK
        yield from block_lines(block, files, rendered=rendered)
    if view.together:
        yield BLANK
        yield heading("judged together")
        yield from together_lines(view)


def closing_lines(view: AnswerView) -> Iterator[StyledLine]:
    """Yield what stands last on the page: the other verdicts on the answer, and the facts."""
    now, (_, blocks) = time.time_ns() // 1000, criteria(view, SIGNS)
    for title, others in other_judgements(view):
        yield BLANK
        yield heading(title)
        for judgement in others:
            yield from judgement_lines(judgement, now, signs=SIGNS)
        blocks += reasoning(others)
    for block in blocks:
        yield BLANK
        yield from block_lines(block, {}, rendered=False)
    yield BLANK
    yield from footer_lines(view, now)


def block_lines(
    block: TextBlock, files: Mapping[str, Sequence[StyledLine]], *, rendered: bool
) -> Iterator[StyledLine]:
    """Yield a title and the text below it.

    With `rendered` an answer that is Markdown or JSON is laid out, and files are shown.
    """
    title = heading(f"▌ {block.title}" if block.by_candidate else block.title)
    lines: Iterable[StyledLine] = block.lines or text_lines(block.text, block.colour)
    if block.by_candidate and rendered and (text := render_text(block.text)):
        lines = text.lines
        if text.is_markdown:
            title = title._replace(spans=(*title.spans, StyledSpan("  as Markdown", "faint")))
    yield title
    for line in lines:
        yield line._replace(indent=line.indent + _INDENT)
    for id in block.files if rendered else ():
        for line in files.get(id, ()):
            yield line._replace(indent=_INDENT)


def lack_lines(view: AnswerView, result: Result, hint: str) -> Iterator[StyledLine]:
    """Yield what is missing, with a `hint` how to get it, or that nothing judges the answer."""
    if missing := list(missing_lines(view, is_judged=bool(result.evaluation))):
        yield BLANK
        yield from missing
        yield from text_lines(hint, "faint")
    elif not result.evaluation:
        yield from text_lines("Nothing judges it: it has no instructions and no checks.", "faint")


def reason_lines(view: AnswerView) -> Iterator[StyledLine]:
    """Yield in one line what each judge that counts said, of checks the first that did not pass."""
    said: list[tuple[Judgement, str]] = []
    for judgement in (each for each in view.judgements if each.counts):
        failed = (check_text(check) for check in judgement.checks if check.verdict != "pass")
        if reason := next(failed, "") or judgement.feedback:
            said.append((judgement, reason))
    spans: list[StyledSpan] = []
    for judgement, reason in said:
        sign = verdict_span(judgement.verdict, SIGNS)
        text = clip(f"{judgement.by}: {' '.join(reason.split())}", _REASONS // len(said))
        spans += [StyledSpan("  ")] * bool(spans)
        spans += [sign._replace(text=f"{sign.text.partition(' ')[0]} "), StyledSpan(safe(text))]
    if spans:
        yield StyledLine(tuple(spans))


def verdict_lines(view: AnswerView, most: int | None = None) -> Iterator[StyledLine]:
    """Yield the verdicts on the case.

    With `most`, each check has one line of at most so many columns.
    """
    for judgement in own_judgements(view):
        yield from _judgement(judgement, most)
    yield from note_lines(view)


def _judgement(judgement: Judgement, most: int | None = None) -> Iterator[StyledLine]:
    yield BLANK
    yield from judgement_lines(judgement, time.time_ns() // 1000, signs=SIGNS, most=most)


# --- two answers side by side


def compared_lines(
    one: tuple[Result, AnswerView], other: tuple[Result, AnswerView]
) -> tuple[list[StyledLine], list[StyledLine]]:
    """Show two answers, with the words marked that differ, and the verdicts on each."""
    (_, first), (_, second) = one, other
    differences = compare_side_by_side(first.answer, second.answer)
    is_marked = None not in (first.id, second.id)
    if first.answer and second.answer:
        same = sum(
            len(piece.text) for line in differences[0] for piece in line if not piece.differs
        )
        if same < MIN_SHARED * max(len(first.answer), len(second.answer)):
            is_marked = False
    differ = any(piece.differs for lines in differences for line in lines for piece in line)
    sides: list[list[StyledLine]] = []
    for number, (result, view) in enumerate((one, other)):
        lines = [BLANK]
        if view.id is None:
            lines += text_lines("No answer yet.", "pending")
        elif is_marked:
            colour = ("old", "new")[number]
            if differ:
                meaning = StyledSpan(f" only in the answer of {safe(result.model)}", "faint")
                lines.append(StyledLine((*marked_spans("words", colour), meaning)))
            for pieces in differences[number]:
                spans: list[StyledSpan] = []
                for piece in pieces:
                    text = safe(piece.text, lines=True).expandtabs(4)
                    spans += marked_spans(text, colour) if piece.differs else [StyledSpan(text)]
                lines.append(StyledLine(tuple(spans)))
        else:
            lines += text_lines(view.answer)
        for judgement in view.judgements:
            if not judgement.why_not:
                lines += _judgement(judgement)
        lines += note_lines(view)
        sides.append(lines)
    return sides[0], sides[1]


# --- the title of the page of an answer


def answer_title(navigator: CaseNavigator, progress: str) -> tuple[TitlePart, ...]:
    """Return the parts of the title; with an answer beside another one their candidates first."""
    case, run, model = navigator.case, navigator.cases.run, navigator.model
    (number, count), (prompt, prompts) = navigator.case_number, navigator.prompt_number
    numbered = f"case {number:,} of {count:,}" if count > 1 else ""
    of_prompts = f"prompt {prompt} of {prompts}" if prompts > 1 else ""
    place = ", ".join(filter(None, (numbered, of_prompts))), numbered
    owner = f"run {run[:8]}" if run else "workspace"
    names = case.file, case.row, case.prompt
    if navigator.other:
        beside = " beside ".join(short_names([model, navigator.other]))
        return place, progress, beside, (owner, ""), *names
    models = navigator.cases.models
    return owner, place, progress, *names, (model, short_names(models)[models.index(model)])


# --- the texts of the page of an answer: one answer, or two side by side


@dataclass(frozen=True, slots=True)
class AnswerTexts:
    """An answer as lines as it is written, and the answer of another candidate beside it."""

    view: AnswerView
    head: Sequence[StyledLine]
    """The case, the verdict, and what is missing."""
    reasons: Sequence[StyledLine] = ()
    """What the judges said, in short."""
    verdicts: Sequence[StyledLine] = ()
    """The verdicts of all judges."""
    written: Sequence[StyledLine] = ()
    """The conversation, and how it is judged, below an empty line."""
    laid_out: Sequence[StyledLine] = ()
    """The same with answers that are Markdown or JSON rendered."""
    closing: Sequence[StyledLine] = ()
    """Verdicts by other instructions or checks, and the facts."""
    other: Sequence[StyledLine] = ()
    explained: Sequence[StyledLine] = ()
    """Where the answer differs from what was expected, and the history; empty until read."""
    asked: Sequence[StyledLine] = ()
    """The question and the instructions of two answers side by side."""

    @property
    def lines(self) -> list[StyledLine]:
        """Return the whole page as it is written."""
        return [*self.begin(is_rendered=False), *self.rest]

    def begin(self, *, is_rendered: bool) -> list[StyledLine]:
        """Return the first part: the verdict with its reasons, the conversation, the criteria.

        If it `is_rendered`, answers that are Markdown or JSON are laid out.
        """
        return [*self.head, *self.reasons, *(self.laid_out if is_rendered else self.written)]

    @property
    def rest(self) -> list[StyledLine]:
        """Return the verdicts in full, their history, and the facts."""
        return [*self.verdicts, *self.explained, *self.closing]

    @property
    def is_rendered(self) -> bool:
        """Return whether something is not shown as it is written."""
        return self.laid_out != self.written


def head_lines(place: CaseNavigator) -> Iterator[StyledLine]:
    """Yield the place among cases, the verdict, and whether the files have the case no longer."""
    cases, result = place.cases, place.result
    mixed = cases.mixed.get(result.evaluations)
    return place_lines(place.case, result, place.attempt, cases.labels, mixed, place.gone)


def answer_texts(
    place: CaseNavigator,
    view: AnswerView,
    files: Mapping[str, Sequence[StyledLine]],
    hint: str,
) -> AnswerTexts:
    """Return one answer; a `hint` when it or a judgement is missing.

    `files` are those of its messages, as lines by id.
    """
    return AnswerTexts(
        view,
        head=[*head_lines(place), *lack_lines(view, place.result, hint)],
        reasons=list(reason_lines(view)),
        verdicts=list(verdict_lines(view)),
        written=list(answer_lines(view, files)),
        laid_out=list(answer_lines(view, files, rendered=True)),
        closing=list(closing_lines(view)),
    )


def compared_texts(
    place: CaseNavigator, beside: Result, view: AnswerView, other: AnswerView
) -> AnswerTexts:
    """Return the answers of two candidates, with their differences marked."""
    left, right = compared_lines((place.result, view), (beside, other))
    case, labels = place.case, place.cases.labels
    name, *head = place_lines(case, place.result, place.attempt, labels)
    asked = [name, *(text_lines(place.gone, "pending") if place.gone else ())]
    users = [turn.text for turn in view.conversation if turn.role == "user" and not turn.answer]
    asked += question_lines(users[-1] if users else "", _LINES)
    for block in criteria(view, SIGNS)[0]:
        asked += question_lines(block.text, _LINES, f"{block.title}  ")
    _, *beside_head = place_lines(case, beside, place.attempt_beside, labels)
    return AnswerTexts(view, head, verdicts=left, other=[*beside_head, *right], asked=asked)


# --- text files of a test as lines below the message that has them


_MOST_FILES = 4
"""How many text files of a conversation are shown."""
_MOST_LINES, _MOST_CHARACTERS = 40, 4_000
"""How much of one is shown."""
_EDGE = "│ "


def render_text_files(
    view: AnswerView, read: Callable[[Sequence[str]], Mapping[str, bytes]]
) -> dict[str, list[StyledLine]]:
    """Read the first text files of a conversation as lines by id; none that cannot be read."""
    paths = {file.id: file.path for turn in view.conversation for file in turn.text_files}
    contents = _read_files([*paths][:_MOST_FILES], read)
    return {id: text_file_lines(paths[id], data) for id, data in contents.items()}


def _read_files(
    ids: Sequence[str], read: Callable[[Sequence[str]], Mapping[str, bytes]]
) -> Mapping[str, bytes]:
    """Return files by id; none that cannot be read: each is named all the same."""
    with suppress(EvalstoreError):
        return read(ids) if ids else {}
    return {}


def text_file_lines(path: str, data: bytes) -> list[StyledLine]:
    """Return the beginning of a file under its path, and how much more of it there is."""
    begin = data[: 4 * _MOST_CHARACTERS].decode("utf-8", "replace")[:_MOST_CHARACTERS]
    listed = begin.splitlines()[:_MOST_LINES]
    lines = [StyledLine((StyledSpan(f"{_EDGE}{safe(path)}", "faint"),))]
    for text in listed:
        spans = StyledSpan(_EDGE, "faint"), StyledSpan(safe(text, lines=True).expandtabs(4))
        lines.append(StyledLine(spans, mark=_EDGE))
    left = len(data) - len("\n".join(listed).encode())
    if left > 1 or len(listed) < len(begin.splitlines()):  # a file may end with the end of a line
        more = StyledSpan(f"{_EDGE}… {plural(left, 'more byte')}", "faint")
        lines.append(StyledLine((more,)))
    return lines


# --- what is saved in a file


FileTexts = Mapping[str, Callable[[], str]]
"""What makes the text of a file, by the endings that it can have, the usual one first."""


def table_files(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> FileTexts:
    """Return the files of a table."""

    def as_json() -> str:
        names = [title or f"column{number}" for number, title in enumerate(titles, 1)]
        listed = [dict(zip(names, row, strict=True)) for row in rows]
        return json.dumps(listed, ensure_ascii=False, indent=2) + "\n"

    return {
        ".md": lambda: "".join(f"{line}\n" for line in markdown_lines(titles, rows)),
        ".csv": lambda: "".join(f"{line}\n" for line in csv_lines(titles, rows)),
        ".json": as_json,
    }


def text_files(text: str) -> FileTexts:
    """Return the files of a text."""
    return {
        ".txt": lambda: f"{text}\n",
        ".json": lambda: json.dumps(text, ensure_ascii=False) + "\n",
    }


def save(folder: Path, name: str, files: FileTexts) -> Path:
    """Write it into a new file; raises `EvalstoreError`."""
    if not name.strip():
        raise EvalstoreError("a file needs a name")
    try:
        path = folder / Path(name.strip()).expanduser()
        if path.suffix.lower() not in files:
            raise EvalstoreError(f"'{name}' ends in none of {', '.join(files)}")
        text = files[path.suffix.lower()]()
        write_whole(path, text.encode(errors="backslashreplace"), exclusive=True)
    except FileExistsError:
        raise EvalstoreError(
            f"there is a '{name}' already", hint="nothing is overwritten: choose another name"
        ) from None
    except (OSError, ValueError, RuntimeError) as problem:
        words = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise EvalstoreError(f"'{name}' cannot be written: {words}") from problem
    return path


# --- images as lines of text: two pixels in each character, an upper and a lower half of it


_DECODER = "evalstore.interfaces.tui.render.image_decoder"
_MOST_BYTES = 20_000_000
"""The largest file that is decoded."""
_MOST_IMAGES = 4
"""How many images of a conversation are shown."""
_WIDTH, _HEIGHT = 60, 20
"""Columns and rows of the lines at most."""
IMAGE_WIDTH = _WIDTH + 5
"""The columns of a widget that shows images without wrapping them."""


def render_images(
    view: AnswerView, read: Callable[[Sequence[str]], Mapping[str, bytes]]
) -> dict[str, list[StyledLine]]:
    """Read the first images of a conversation as lines by id; none that cannot be shown."""
    listed = (image.id for turn in view.conversation for image in turn.images)
    ids = list(dict.fromkeys(listed))[:_MOST_IMAGES]
    if not ids or find_spec("PIL") is None:  # the extra `images` is not installed
        return {}
    return {id: image_lines(data) for id, data in _read_files(ids, read).items()}


def image_lines(data: bytes) -> list[StyledLine]:
    """Return the lines of an image; none when it is too large or slow, damaged or unknown."""
    decoded = _decoded(data)
    if decoded is None:
        return []
    width, height, colours_in_hex = decoded

    def colour(x: int, y: int) -> str:
        place = 6 * (y * width + x)
        return f"#{colours_in_hex[place : place + 6]}"

    lines: list[StyledLine] = []
    for y in range(0, height - 1, 2):
        spans: list[StyledSpan] = []
        for x in range(width):
            colours = f"{colour(x, y)} on {colour(x, y + 1)}"
            if spans and spans[-1].colour == colours:
                spans[-1] = StyledSpan(f"{spans[-1].text}▀", colours)
            else:
                spans.append(StyledSpan("▀", colours))
        lines.append(StyledLine(tuple(spans)))
    return lines


def _decoded(data: bytes) -> tuple[int, int, str] | None:
    """Decode an image to its columns, rows and colours; a slow decoder is ended."""
    if len(data) > _MOST_BYTES:
        return None
    try:
        decoded = call(_DECODER, "decode", base64.b64encode(data).decode(), _WIDTH, 2 * _HEIGHT)
    except (LimitReached, NotRunError):
        return None
    return tuple(decoded) if decoded else None
