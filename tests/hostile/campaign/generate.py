"""Hostile values and texts, drawn from small grammars."""

from __future__ import annotations

import json
from random import Random
from typing import Any

CONTROLS = ("\x1b[31m", "\x9b2J", "\u202e", "\u2066", "\x07", "\r", "\x00", "\u2028", "\ufeff")
TEXTS = (
    "",
    " ",
    "{{",
    "}}",
    "{% raw %}",
    "{#",
    "---",
    "~~~",
    "null",
    "../../outside/secret.txt",
    "/dev/zero",
    "[/] [bold]",
    "'; DROP TABLE runs; --",
    "%s%n",
    "\ud7ff",
    "👤" * 50,
    "a" * 5000,
    *CONTROLS,
)
NUMBERS = (0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 1e308, -0.0, 0.1, float("inf"), float("nan"))
PATTERNS = (
    "^(a+)+$",
    "(a|aa)*$",
    "(?R)",
    "(a{65535}){65535}",
    "(.*)*x",
    "\\",
    "[",
    "(?<n>a)\\k<n>",
)
# fmt: off
FIELDS = (
    "id", "tags", "systemPrompts", "availableTools", "replacements", "lists", "dataset", "options",
    "answer", "messages", "group", "attempts", "repetitions", "evaluators", "threshold",
    "structuredResponseSchema", "template", "description", "candidates", "candidatesTemperature",
    "requiredTags1", "verdict", "timeout", "concurrency", "paths", "store", "retries", "code",
    "provider", "providerModelCode", "responses", "costs", "capabilities", "baseURL",
    "apiKeyEnvVar", "type", "name", "parameters", "properties", "required", "pattern", "rates",
    "rateInUSD", "when", "evaluationsPerEvaluator", "maxAge",
)
CHECKS = (
    "equals", "contains", "containsAny", "startsWith", "oneOf", "regex", "length", "refusal",
    "notEmpty", "exact", "f1", "fuzzy", "similar", "levenshtein", "number", "monotonic", "json",
    "jsonSchema", "jsonEquals", "jsonSubset", "jsonPath", "toolCalls", "noToolCalls",
    "finishReason", "latency", "cost", "tokens", "allSame", "allEqual", "expr", "judge",
)
FILTERS = (
    "length", "list", "tojson", "upper", "center(99999999)", "string", "batch(1)",
    "slice(9999999)", "wordwrap(1)", "format(1)", "join('x' * 9999)", "replace('a', 'aaaaaaaaaa')",
    "indent(999999)", "sum", "sort", "unique", "random", "attr('__class__')",
    "map(attribute='__class__')", "pprint", "xmlattr", "urlize", "groupby('x')", "max",
)


# fmt: on


def scalar(chance: Random) -> Any:
    """A text, a number, or nothing."""
    return chance.choice(
        [
            chance.choice(TEXTS),
            chance.choice(NUMBERS),
            chance.choice((None, True, False)),
            chance.choice(PATTERNS),
            f"{{{{ {expression(chance)} }}}}",
        ]
    )


def value(chance: Random, depth: int = 3) -> Any:
    """A value as JSON or YAML has it."""
    kind = chance.random()
    if depth == 0 or kind < 0.5:
        return scalar(chance)
    size = chance.choice((0, 1, 2, 3))
    if kind < 0.7:
        return [value(chance, depth - 1) for _ in range(size)]
    if kind < 0.75:
        return nested(chance.choice((50, 300, 5000)))
    names = chance.choice((FIELDS, CHECKS))
    return {chance.choice(names): value(chance, depth - 1) for _ in range(size)}


def nested(depth: int) -> Any:
    """A list in a list, and so on; a text, as no writer of JSON takes it."""
    return "[" * depth + "]" * depth


def expression(chance: Random, depth: int = 3) -> str:
    """An expression of a template."""
    if depth == 0:
        names = ["1", "'a'", "n", "item", "loop", "self", "''", "[]", "range(9999)", "cycler"]
        return chance.choice(
            [*names, "1e999", "lipsum", "namespace", "9" * chance.choice((3, 5000))]
        )
    inner = expression(chance, depth - 1)
    other = expression(chance, depth - 1)
    forms = (
        f"({inner} ~ {other})",
        f"({inner} + {other})",
        f"({inner} * {chance.choice((2, 10**9))})",
        f"({inner} ** {other})",
        f"({inner} % {other})",
        f"({inner}|{chance.choice(FILTERS)})",
        f"{inner}.__class__",
        f"{inner}['__globals__']",
        f"('%{chance.choice((5, 1500000000))}d'|format(1))",
        f"'{{0:{{1}}}}'.format({inner}, {chance.choice((9, 1500000000))})",
        f"[{inner}, {other}]",
        f"({inner} if {other} else 0)",
    )
    return chance.choice(forms)


def template(chance: Random, depth: int = 2) -> str:
    """A text with expressions, loops and macros."""
    if depth == 0:
        return chance.choice(TEXTS[:8]) + f"{{{{ {expression(chance)} }}}}"
    inner = template(chance, depth - 1)
    count = chance.choice((2, 99, 99999))
    forms = (
        f"{{% for i in range({count}) %}}{inner}{{% endfor %}}",
        f"{{% set x = {expression(chance)} %}}{inner}",
        f"{{% if {expression(chance)} %}}{inner}{{% endif %}}",
        f"{{% macro m(x) %}}{inner}{{{{ m(x) }}}}{{% endmacro %}}{{{{ m(1) }}}}",
        f"{{% raw %}}{inner}{{% endraw %}}" * (chance.choice((1, 1000)) if depth == 1 else 1),
        inner + template(chance, depth - 1),
    )
    return chance.choice(forms)


def checks(chance: Random) -> str:
    """A list of checks in YAML, which JSON is, too."""
    made = []
    for _ in range(chance.randint(1, 3)):
        inputs = value(chance, 2)
        name = chance.choice(CHECKS)
        made.append({name: inputs} if chance.random() < 0.7 else {"type": name, "value": inputs})
    return text_of(made)


def test_file(chance: Random) -> str:
    """A test file that may be right."""
    fields = {chance.choice(FIELDS[:18]): value(chance) for _ in range(chance.choice((0, 1, 2)))}
    head = f"---\n{text_of(fields)}\n---\n" if fields else ""
    shown = template(chance) if chance.random() < 0.5 else chance.choice(TEXTS)
    instructions = template(chance) if chance.random() < 0.3 else ""
    block = f"~~~checks\n{checks(chance)}\n~~~\n"
    return f"{head}\n# 👤\n\nQuestion. {shown}\n\n---\n\n{instructions}\n\n{block}"


def text_of(content: Any) -> str:
    """Something as JSON, with what JSON does not allow: NaN and endless numbers."""
    return json.dumps(content, ensure_ascii=False)
