"""Formats texts, numbers and times for a terminal.

Text from models and files is never treated as markup. Control characters are shown as escapes, so
that an answer cannot move the cursor or change colours.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from evalstore.core.values import URGENCY, Json

WORKSPACE = "workspace"
"""The name in place of the id of a run."""
NEWEST_RUNS = 10
"""Runs that are searched for results that broke."""
LAST_RUNS = f"from the last {NEWEST_RUNS} runs"
STILL_BROKEN = f"Still broken {LAST_RUNS}"
BROKEN_PENDING = "broken before and now pending"
"""Said of these results: of those that fail, and of those that are pending."""
_SHOWN = 120
"""The most characters of a text in a feedback."""
_BEFORE = 20
"""The number of characters that are shown before the first difference."""


_GAP_AND_WORD = re.compile(r"(?P<gap>\s*)(?P<word>\S+)")


def safe(text: str, *, lines: bool = False) -> str:
    """Return the text with control characters as escapes; with `lines`, keep line ends and tabs."""
    plain = text.replace("\n", "").replace("\t", "") if lines else text
    if plain.isprintable():
        return text
    keep = "\n\t" if lines else ""
    return "".join(
        character
        if character in keep
        or character.isprintable()
        or unicodedata.category(character) in ("Zs", "Co")
        else character.encode("unicode_escape").decode()
        for character in text
    )


def steady(text: str) -> str:
    """Return the text without the parts of emoji for which terminals count different columns.

    Selectors of a variant (U+FE0F makes a wide emoji of a narrow sign in some terminals, and
    changes nothing in tmux) and the tones of skin that follow a sign.
    """
    if text.isascii():
        return text
    return re.sub("[\ufe0e\ufe0f]|(?<=[^\\x00-\\x7f])[\U0001f3fb-\U0001f3ff]", "", text)


def short(id: str) -> str:
    """Return the first digits of an id, as it is shown."""
    return id[:8]


def status_word(status: str) -> str:
    """Return the status of a run for people, in at most 11 letters."""
    return "at limit" if status == "over budget" else status


def kind_word(kind: str) -> str:
    """Return the word for a kind of stored object."""
    words = {"session": "answer", "judgement": "verdict", "evaluator": "judge"}
    return words.get(kind, "judging version" if kind == "evaluation" else kind)


def plural(count: int, word: str) -> str:
    """Return a count with its noun, such as `1 case` or `2 cases`."""
    if word.endswith("y"):
        return f"{count:,} {word if count == 1 else word[:-1] + 'ies'}"
    end = "es" if word.endswith("sh") else "s"
    return f"{count:,} {word if count == 1 else word + end}"


def plural_is(count: int, word: str, rest: str = "") -> str:
    """Return a count with its noun and verb, such as `1 case is` or `2 cases with errors are`."""
    return f"{plural(count, word)}{rest} {'is' if count == 1 else 'are'}"


def money(amount: float | None, currency: str = "USD") -> str:
    """Return an amount of money as text; `price unknown` if it is None."""
    if amount is None:
        return "price unknown"
    digits = "0" if amount == 0 else f"{amount:.2f}" if amount >= 1 else f"{amount:.4f}"
    less = "<" if 0 < amount < 0.0001 else ""
    digits = "0.0001" if less else digits
    return f"{less}${digits}" if currency == "USD" else f"{less}{digits} {currency}"


def known_price(
    amount: float | None, unpriced: int, currency: str = "USD", *, brief: bool = False
) -> str:
    """Return the cost of calls, `unpriced` of which have no known price.

    `amount` is the cost of the others. It is a lower bound if there is one, else the price is
    unknown. With `brief`, the number of calls without a price is left out.
    """
    if not unpriced:
        return money(amount, currency)
    if not amount:
        return money(None)
    least = f"at least {money(amount, currency).removeprefix('<')}"
    return least if brief else f"{least} ({plural(unpriced, 'call')} without a price)"


def cost_text(cost: float | None, spending: Sequence[Json], *, brief: bool = False) -> str:
    """Return the cost of a run; if some prices are unknown, the cost of the other calls.

    A cost of scripted models alone is `$0.01 simulated`. With `brief`, the number of calls without
    a price is left out.
    """
    if cost is not None:
        return simulated(money(cost)) if is_simulated(spending) else money(cost)
    known = sum(each.get("knownCost", each["cost"]) or 0.0 for each in spending)
    counts = [each.get("unpriced", 0) for each in spending if each["cost"] is None]
    if known and not all(counts):
        return f"{known_price(known, 1, brief=True)}{'' if brief else ' (some prices unknown)'}"
    return known_price(known, sum(counts) or 1, brief=brief)


def is_simulated(spending: Sequence[Json]) -> bool:
    """Return whether there is a cost, and all of it is of scripted models, so nobody is paid."""
    paid = [each for each in spending if each["cost"] != 0]
    return bool(paid) and all(each.get("simulated") for each in paid)


def simulated(price: str) -> str:
    """Return a price with a word that says that nobody is paid."""
    return f"{price} simulated"


def saved_text(usd: float, *, is_simulated: bool) -> str:
    """Return what reuse has saved."""
    return simulated(money(usd)) if is_simulated else money(usd)


def likely_price(
    usd: float | None,
    guess: int | None,
    verdict_guess: int | None = None,
    *,
    at_most: bool = False,
    brief: bool = False,
    is_simulated: bool = False,
) -> str:
    """Return the estimated cost as text.

    `guess` and `verdict_guess` are the assumed tokens of an answer and of a judge's verdict. With
    `at_most`, some of the calls may not be necessary. With `brief`, the guesses are left out.
    With `is_simulated`, it says that nobody is paid.
    """
    if usd is None:
        return money(None) if brief else "at an unknown price"
    if not usd or not at_most:
        text = money(usd)
        text = f"less than {text[1:]}" if text.startswith("<") else f"about {text}"
        text = simulated(text) if usd and is_simulated else text
    else:
        text = f"up to about {money(usd).removeprefix('<')}"
        text = simulated(text) if is_simulated else text
    told = "" if guess is None else f"an answer has {plural(guess, 'token')}"
    if verdict_guess is not None:
        of_verdict = f"has {plural(verdict_guess, 'token')}"
        told = f"{told} and a verdict {verdict_guess:,}" if told else f"a verdict {of_verdict}"
    return f"{text} (if {told})" if told and usd and not brief else text


def planned_judgements(count: int, by_checks: int, *, may_be_less: bool) -> str:
    """Return how many judgements a run would make: `6 verdicts by checks and up to 4 by models`.

    Failed checks save judgements of models if `may_be_less`.
    """
    return _judgements(count, by_checks, "verdict", "up to " if may_be_less else "")


def new_judgements(count: int, by_checks: int) -> str:
    """Return how many judgements a run made: `6 new verdicts by checks and 4 by models`."""
    return _judgements(count, by_checks, "new verdict")


def _judgements(count: int, by_checks: int, noun: str, bound: str = "") -> str:
    """Return the number of judgements, split where both checks and models make some."""
    by_models = count - by_checks
    if not by_checks or not by_models:
        return f"{bound}{plural(count, noun)}"
    return f"{plural(by_checks, noun)} by checks and {bound}{by_models:,} by models"


def count(number: int) -> str:
    """Return a number in few characters: `950`, `12.3k`, `4.56M`."""
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.2f}M"


def bytes_text(count: int) -> str:
    """Return a number of bytes in few characters: `644 bytes`, `12.3 kB`, `4.56 MB`."""
    if count < 1000:
        return plural(count, "byte")
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.2f} MB"


def half_up(number: float, digits: int = 1) -> float:
    """Return a number rounded to these digits, a half away from zero: of 62.5 and 87.5 both up."""
    scale = 10**digits
    size = math.floor(round(abs(number) * scale, 6) + 0.5) / scale
    return math.copysign(size, number) if size else 0.0


def percent(share: float | None) -> str:
    """Return a share as a percentage."""
    return "-" if share is None else f"{half_up(100 * share):.1f}%"


def whole_percent(share: float) -> str:
    """Return a share in whole percent for headlines and heads; only all is 100%, only none 0%."""
    whole = f"{half_up(100 * share, 0):.0f}%"
    return percent(share) if whole in ("0%", "100%") and share not in (0, 1) else whole


def interval_bar(interval: tuple[float, float] | None, rate: float | None, width: int) -> str:
    """Return a share with its interval on a scale of `width` columns: `··├──●─┤···`."""
    if interval is None or rate is None:
        return ""
    low, high = interval
    first, middle, last = (round(share * (width - 1)) for share in (low, rate, high))
    return "".join(
        "●"
        if place == middle
        else "├"
        if place == first
        else "┤"
        if place == last
        else "─"
        if first < place < last
        else "·"
        for place in range(width)
    )


def ago(microseconds: int, now: int) -> str:
    """Return how long ago a time was, such as `3 hours ago`; both are microseconds since 1970."""
    seconds = max(0, (now - microseconds) // 1_000_000)
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {word}{'s' * (count != 1)} ago"
    return "just now" if seconds < 5 else f"{seconds} seconds ago"


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def columns_of(text: str) -> int:
    """Return how many columns a text takes in a terminal."""
    if text.isascii():
        return len(text)
    others = _NOT_ASCII.findall(text)
    return len(text) - len(others) + sum(map(_columns, others))


@cache
def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def widest(texts: Iterable[str]) -> int:
    """Return how many columns the widest text takes; 0 without one."""
    return max(map(columns_of, texts), default=0)


def pad(text: str, columns: int) -> str:
    """Return the text padded with blanks to this many columns."""
    return text + " " * max(0, columns - columns_of(text))


def clip(text: str, columns: int) -> str:
    """Return the text as one line of at most this many columns."""
    text = safe(" ".join(text.split()))
    width, cut = 0, 0
    for place, character in enumerate(text):
        width += _columns(character)
        if width > columns:
            return f"{text[:cut].rstrip('…')}…"
        if width < columns:
            cut = place + 1
    return text


def wrap(text: str, columns: int) -> list[str]:
    """Return the text wrapped between words to lines of this many columns.

    A word that is wider than a line is broken.
    """
    text, columns = safe(text), max(20, columns)
    if text.isascii():
        return textwrap.wrap(text, columns, break_on_hyphens=False) or [""]
    lines = [""]
    for match in _GAP_AND_WORD.finditer(text):
        gap = " " * len(match["gap"]) if lines[-1] or not match.start() else ""
        left = columns - columns_of(lines[-1] + gap)
        word = match["word"]
        if columns_of(word) <= left:
            lines[-1] += gap + word
        elif columns_of(word) <= columns:
            lines.append(word)
        else:
            first, *others = break_word(word, left, columns)
            lines[-1] += gap + first if first else ""
            lines += others
    return [line for line in lines if line] or [""]


def break_word(word: str, first: int, columns: int) -> list[str]:
    """Return a word in pieces: one of at most `first` columns, the others of at most `columns`."""
    pieces, left = [""], first
    for character in word:
        size = _columns(character)
        if size > left:
            pieces.append("")
            left = columns
        pieces[-1] += character
        left -= size
    return pieces


def as_text(value: Json) -> str:
    """Return a value as text: a text unchanged, None as the empty text, anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False)


def shorten(text: str, at: int = 0) -> str:
    """Return a text in quotes, shortened around the position `at`."""
    start = max(at - _BEFORE, 0) if len(text) > _SHOWN else 0
    cut = text[start : start + _SHOWN]
    return f"'{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(text) else ''}'"


def shorten_to_line(text: str, at: int = 0) -> str:
    """Return a text in quotes, shortened to the line around the position `at`.

    Of a blank line, to the next one that is not blank, or else to the last one.
    """
    rest = text[at:]
    if rest.strip():
        at += len(rest) - len(rest.lstrip())
    else:
        at = max(len(text.rstrip()) - 1, 0)
    start = max(text.rfind(mark, 0, at) for mark in "\r\n") + 1
    ends = [text.find(mark, at) for mark in "\r\n"]
    end = min((end for end in ends if end >= 0), default=len(text))
    line = shorten(text[start:end], at - start)[1:-1]
    before = "…" if text[:start].strip() and not line.startswith("…") else ""
    after = "…" if text[end:].strip() and not line.endswith("…") else ""
    return f"'{before}{line}{after}'"


def difference_at(expected: str, actual: str, at: int) -> str:
    """Return the lines of both texts around a position; more of them where only blanks differ."""
    lines = shorten_to_line(expected, at), shorten_to_line(actual, at)
    if lines[0] == lines[1]:
        lines = shorten(expected, at), shorten(actual, at)
    return f"expected {lines[0]}, found {lines[1]}"


def first_difference(first: str, second: str) -> int:
    """Return the index at which two texts differ first."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


def storable(text: str) -> str:
    """Return a text that can be stored as UTF-8: a lone surrogate becomes U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names without the folders that all names with a folder have in common."""
    parts = [name.split("/") for name in names]
    while True:
        folders = [part for part in parts if len(part) > 1]
        if len(folders) < 2 or len({part[0] for part in folders}) > 1:
            break
        parts = [part[1:] if len(part) > 1 else part for part in parts]
    shorter = ["/".join(part) for part in parts]
    return shorter if len({*shorter}) == len({*names}) else list(names)


def spread(places: Sequence[float], gap: int, most: int) -> list[float]:
    """Return where names stand whose lines end at these places: so far apart that each is seen."""
    order, spread = sorted(range(len(places)), key=places.__getitem__), [*places]
    for above, below in pairwise(order):
        spread[below] = max(spread[below], spread[above] + gap)
    for number in reversed(order):
        spread[number] = max(0, min(spread[number], most))
        most = int(spread[number]) - gap
    return spread


def side_name(id: str, names: Sequence[str] = ()) -> str:
    """Return `the workspace`, or a run with its short id and its names: `run a201ccab (v2)`."""
    listed = f" ({', '.join(names)})" if names else ""
    return "the workspace" if id == WORKSPACE else f"run {id[:8]}{listed}"


def case_name(file: str, row: str = "", prompt: str | None = None) -> str:
    """Return a name such as `tests/weather.md [city=Oslo] (brief)`; `prompt` is a prompt's name."""
    name = f"{file} [{row}]" if row else file
    return f"{name} ({prompt})" if prompt else name


ROW_NUMBER = re.compile(r" #\d+$")
"""The number at the end of a label that several rows would have."""

_MARKS = {"old": ("[-", "-]"), "new": ("{+", "+}")}
_COLOURS = {"no reply": "error", "answered": "faint", "none": "faint"}
"""The colours of results that are not verdicts."""


class StyledSpan(NamedTuple):
    """A part of a line and the name of its colour: a verdict, `faint`, `heading`, or empty.

    A part of an image has two colours: `#rrggbb on #rrggbb`.
    """

    text: str
    colour: str = ""


class StyledLine(NamedTuple):
    """A line before it is wrapped; wrapped rows begin at the indent and the hang."""

    spans: tuple[StyledSpan, ...]
    indent: int = 0
    hang: int = 0
    """How much further to the right than the first row the others begin."""
    mark: str = ""
    """What the others begin with, too: `# ` of a comment."""

    @property
    def text(self) -> str:
        """Return the text without colours and indent."""
        return "".join(span.text for span in self.spans)


def text_lines(text: str, colour: str = "", indent: int = 0) -> Iterator[StyledLine]:
    """Yield the lines of a text; control characters are shown as escapes."""
    for line in text.split("\n"):  # one by one, because testing printable lines is quick
        shown = line if line.isprintable() else safe(line, lines=True).expandtabs(4)
        yield StyledLine((StyledSpan(shown, colour),), indent)


def marked_words(text: str, places: Sequence[tuple[int, int]]) -> Iterator[StyledSpan]:
    """Yield a text with the words that were searched for; control characters are escapes."""
    at = 0
    for first, last in places:
        if first > at:
            yield StyledSpan(safe(text[at:first]))
        yield StyledSpan(safe(text[first:last]), "match")
        at = last
    if at < len(text) or not places:
        yield StyledSpan(safe(text[at:]))


def marked_spans(text: str, colour: str) -> Iterator[StyledSpan]:
    """Yield removed (`old`) or new words between signs that are visible without colours.

    Blanks at their end stand behind the signs, as in `git diff --word-diff`.
    """
    words = text.rstrip() or text
    if words:
        begin, end = _MARKS[colour]
        yield StyledSpan(f"{begin}{words}{end}", colour)
    if words != text:
        yield StyledSpan(text[len(words) :])


def heading(text: str) -> StyledLine:
    """Return the heading of a section."""
    return StyledLine((StyledSpan(safe(text), "heading"),))


BLANK = StyledLine(())
BADGE = "badge "
"""The beginning of the colour of a verdict that is drawn filled, with a blank at both ends."""


class TextBlock(NamedTuple):
    """A text with a title."""

    title: str
    text: str
    colour: str = ""
    by_candidate: bool = False
    """Whether the candidate wrote the text."""
    files: tuple[str, ...] = ()
    """The ids of the images and of the text files that are shown below the text."""
    lines: tuple[StyledLine, ...] = ()
    """The same text in several colours; empty: it has one."""


def verdict_span(word: str, signs: Mapping[str, str]) -> StyledSpan:
    """Return a verdict in its colour, after its sign if it has one."""
    sign = f"{signs[word]} " if word in signs else ""
    return StyledSpan(f"{sign}{word}", _COLOURS.get(word, word))


_SHARE = 4
"""One column of so many is for the start that labels share."""


def shared_starts(labels: Iterable[str]) -> dict[str, int]:
    """Return for each label how many characters it shares with the most similar other label."""
    ordered = sorted(set(labels))
    starts = dict.fromkeys(ordered, 0)
    for before, after in pairwise(ordered):
        count = first_difference(before, after)
        starts[before] = max(starts[before], count)
        starts[after] = max(starts[after], count)
    return starts


def shorten_label(label: str, columns: int, shared: int = 0) -> str:
    """Return a label as one line of at most this many columns.

    `shared` is how many characters at its start other labels have as well. If they are more
    than a few, they are cut, and the end of the label is kept.
    """
    label = one_line(label)
    if columns_of(label) <= columns:
        return label
    if columns_of(label[:shared]) <= columns // _SHARE:
        return clip(label, columns)
    own = _word_start(label, shared, columns // _SHARE)
    room = max(1, columns // _SHARE, min(columns // 2, columns - columns_of(label[own:])))
    start = clip(label[:own], room)
    left = columns - columns_of(start)
    return start + (
        _end(label, left) if columns_of(label[own:]) < left else clip(label[own:], left)
    )


def one_line(label: str) -> str:
    """Return a label in one line, without characters that a terminal obeys."""
    return safe(" ".join(label.split()))


def _end(text: str, columns: int) -> str:
    """Return the end of a text in at most this many columns."""
    start = len(text)
    while start and (columns := columns - columns_of(text[start - 1])) >= 0:
        start -= 1
    return text[start:].lstrip()


def _word_start(text: str, at: int, most: int) -> int:
    """Return where the word at this position starts; `at` if that is more than `most` before."""
    at = min(at, len(text) - 1)
    for start in range(at, max(at - most, 0), -1):
        if not text[start - 1].isalnum():
            return start
    return at


def shorten_labels(labels: Iterable[str], columns: int) -> list[str]:
    """Return the labels, each as one line of at most this many columns.

    Of those that would look alike, the end is kept.
    """
    whole = [*map(one_line, labels)]
    if all(columns_of(label) <= columns for label in whole):
        return whole
    starts = shared_starts(whole)
    short = {label: shorten_label(label, columns, start) for label, start in starts.items()}
    times = Counter(short.values())
    return [
        f"…{_end(label, columns - 1)}" if times[short[label]] > 1 else short[label]
        for label in whole
    ]


SIGNS = {
    "pass": "✓",
    "fail": "✗",
    "undecided": "?",
    "error": "!",
    "no reply": "!",
    "pending": "…",
    "answered": "·",
    "none": "–",
}
MEANINGS = {
    "pass": "the answer is as it must be",
    "fail": "the answer is not as it must be",
    "undecided": "the judges tied, or a reply could not be read",
    "error": "a check could not be computed; the answer's page shows the reason",
    "no reply": "a call to the candidate or to a judge failed; the answer's page shows the reason",
    "pending": "an answer or a verdict is missing",
    "answered": "there is an answer, and nothing judges it",
    "none": "of a person: the label is removed",
}
PERSON = "✎"
LABEL_SIGNS = {
    f"{SIGNS['pass']} pass {PERSON}": "a person has decided",
    f"{SIGNS['fail']} fail {PERSON}{SIGNS['pass']}": (
        "a person added a pass after this run; it counts in the workspace only"
    ),
}
"""Meanings of the signs behind verdicts."""
FAILING = URGENCY[: URGENCY.index("pending")]
"""Verdicts that somebody has to look at."""


def verdict_counts(verdicts: Mapping[str, int], *, signs: bool = True, words: bool = True) -> str:
    """Return `183 ✓ pass, 4 ✗ fail`; perhaps without signs, or `183 ✓ 4 ✗` without words."""
    if not words:
        return " ".join(f"{count:,} {SIGNS[word]}" for word, count in verdicts.items() if count)
    counts = ((f"{count:,}", word) for word, count in verdicts.items() if count)
    return ", ".join(
        f"{count} {SIGNS[word]} {word}" if signs else f"{count} {word}" for count, word in counts
    )
