"""The hand-written hostile workspaces by name, and the sources of imports."""

from __future__ import annotations

import json

from tests.hostile.campaign.nasty_files import (
    CATASTROPHE,
    MARKER,
    OUTSIDE,
    RAN,
    SCHEMAS,
    SERVER,
    TEMPLATES,
    Content,
    Fifo,
    Link,
    Sparse,
    answered,
    asked,
    not_nested,
)

TOUCH = f"touch {RAN}/it; false"
GIT_CONFIG = f'[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "{TOUCH}"\n\tbare = false\n'
GIT = {
    ".git/HEAD": "ref: refs/heads/main\n",
    ".git/refs/heads/.keep": "",
    ".git/objects/.keep": "",
}
PLAIN_GIT = {**GIT, ".git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"}
DOTENV = f"GIT_CONFIG_COUNT=1\nGIT_CONFIG_KEY_0=core.fsmonitor\nGIT_CONFIG_VALUE_0={TOUCH}\n"
SECRET = f"KEY={MARKER}\n"
STARTUP = f"open('{RAN}/it', 'w').close()\n"
DOUBLES = "".join(f'  a{n}: "{{{{a{n + 1}}}}}{{{{a{n + 1}}}}}"\n' for n in range(60))
NOBODY = "127.0.0.1:9/v1"
PROVIDER = {"code": "loopback", "type": "openai-compatible", "baseURL": SERVER}

WORKSPACES: dict[str, dict[str, Content]] = {
    # what must not run
    "git-config-in-dotenv": {**PLAIN_GIT, ".env": DOTENV, **asked("Hi")},
    "git-config-in-folder": {**GIT, ".git/config": GIT_CONFIG, **asked("Hi")},
    "python-path-in-dotenv": {
        ".env": "PYTHONPATH=@OUTSIDE@/../workspace/lib\nPYTHONSTARTUP=lib/sitecustomize.py\n",
        "lib/sitecustomize.py": STARTUP,
        "tests/check.py": "def f(answer):\n    return True\n",
        **asked("Hi", "- python: {file: check.py, function: f}"),
    },
    "untrusted-python-check": {
        "tests/check.py": STARTUP + "def f(answer):\n    return True\n",
        **answered("a", "- python: {file: check.py, function: f}"),
    },
    "long-python-check": {
        "tests/check.py": "x=" + "-" * 200_000 + "1\ndef f(answer):\n    return True\n",
        **answered("a", "- python: {file: check.py, function: f}"),
    },
    # what is outside
    "linked-prompt": {
        "prompts/p.md": Link(f"{OUTSIDE}/secret.txt"),
        **asked("Hi", systemPrompts=["p"]),
    },
    "linked-test": {"tests/t.md": Link(f"{OUTSIDE}/secret.md")},
    "linked-tests-folder": {
        "linked": Link(f"{OUTSIDE}/tests"),
        "evalstore.yaml": '{"candidates": ["candidate"], "paths": {"tests": "linked"}}',
    },
    "linked-schema": {
        "schemas/s.yaml": Link(f"{OUTSIDE}/secret.yaml"),
        **asked("Hi", structuredResponseSchema="s"),
    },
    "linked-dataset": {
        "tests/rows.jsonl": Link(f"{OUTSIDE}/secret.jsonl"),
        **asked("{{ q }}", dataset="rows.jsonl"),
    },
    "dataset-outside": asked("{{ q }}", dataset="../../outside/secret.jsonl"),
    "file-outside": asked("{{_file:../../outside/secret.txt}}"),
    "linked-file": {"tests/f.txt": Link(f"{OUTSIDE}/secret.txt"), **asked("{{_file:f.txt}}")},
    "mentioned-dotenv": {".env": SECRET, **asked("{{_file:../.env}}")},
    "linked-dotenv": {
        ".env": Link("tests/keys.txt"),
        "tests/keys.txt": SECRET,
        **asked("{{_file:keys.txt}}"),
    },
    "other-dotenv": {"tests/.env": SECRET, **asked("{{_file:.env}}")},
    "production-dotenv": {".env.production": SECRET, **asked("{{_file:../.env.production}}")},
    "store-outside": {
        "evalstore.yaml": '{"candidates": ["candidate"], "store": "../made/evil.db"}',
        **asked("Hi"),
    },
    "absolute-store": {
        "evalstore.yaml": '{"candidates": ["candidate"], "store": "@OUTSIDE@/evil.db"}',
        **asked("Hi"),
    },
    "linked-store-folder": {".evalstore": Link(OUTSIDE), **asked("Hi")},
    "other-key": {
        "providers/loopback.yaml": json.dumps({**PROVIDER, "apiKeyEnvVar": "UNRELATED_SECRET"}),
        **asked("Hi"),
    },
    "password-in-url": {
        "providers/loopback.yaml": json.dumps(
            {**PROVIDER, "baseURL": f"http://u:{MARKER}@{NOBODY}"}
        ),
        **asked("Hi"),
    },
    "key-in-url": {
        "providers/loopback.yaml": json.dumps(
            {**PROVIDER, "baseURL": f"http://{NOBODY}?api_key={MARKER}"}
        ),
        **asked("Hi"),
    },
    # texts and sizes
    "utf-16-dotenv": {".env": "KEY=1\n".encode("utf-16"), **asked("Hi")},
    "latin-1-dotenv": {".env": "KEY=é\n".encode("latin-1"), **asked("Hi")},
    "nul-in-dotenv": {".env": b"KEY=\x00\n", **asked("Hi")},
    "fifo-dotenv": {".env": Fifo(), **asked("Hi")},
    "long-dotenv": {".env": "".join(f"A{n}=1\n" for n in range(100_000)), **asked("Hi")},
    "large-dotenv": {".env": Sparse(3 << 30), **asked("Hi")},
    "large-settings": {"evalstore.yaml": Sparse(20 << 30), **asked("Hi")},
    "large-test": {"tests/t.md": Sparse(5 << 30)},
    "large-dataset": {"tests/d.jsonl": Sparse(5 << 30), **asked("{{ q }}", dataset="d.jsonl")},
    "fifo-test": {"tests/t.md": Fifo()},
    "fifo-dataset": {"tests/d.jsonl": Fifo(), **asked("{{ q }}", dataset="d.jsonl")},
    "linked-endless": {"tests/t.md": Link("/dev/zero")},
    "linked-loop": {"tests/t.md": Link("t.md"), "tests/sub": Link(".")},
    "nested-settings": {"evalstore.yaml": "[" * 100_000},
    "nested-frontmatter": {"tests/t.md": f"---\na: {'{b: ' * 5000}\n---\n# 👤\n\nHi\n"},
    "nested-index": {".evalstore/index.json": "[" * 200_000, **asked("Hi")},
    "aliases": {
        "evalstore.yaml": "a: &a [x, x]\n"
        + "".join(
            f"b{n}: &b{n} [*{'a' if n == 0 else f'b{n - 1}'}, *{'a' if n == 0 else f'b{n - 1}'}]\n"
            for n in range(40)
        ),
    },
    # numbers and names
    "huge-number-check": answered("1", f"- number: 1{'0' * 400}"),
    "huge-cost": answered("1", f"- cost: {{max: 1{'0' * 400}}}"),
    "huge-weight": answered("1", f"- {{contains: a, weight: 1{'0' * 400}}}"),
    "huge-spread": asked("Hi", f"- {{allSame: a, max: 1{'0' * 400}, scope: group}}"),
    "huge-hexadecimal": {
        "schemas/s.yaml": f"id: s\nmaximum: 0x{'f' * 5000}\n",
        **asked("Hi", structuredResponseSchema="s"),
    },
    "lone-surrogate": {
        "schemas/s.json": '{"id": "s", "description": "\\ud800"}',
        **asked("Hi", structuredResponseSchema="s"),
    },
    "huge-repetitions": {"tests/t.md": f"# ▶ n ×{'9' * 5000}\n\n# 👤\n\nHi\n\n---\n\nGood?\n"},
    "recursive-pattern": answered("a", '- regex: "(?R)"'),
    "large-pattern": answered("a", '- regex: "(a{65535}){65535}"'),
    "slow-pattern": answered(CATASTROPHE, '- regex: "^(a+)+$"'),
    "nested-not": {"schemas/s.json": not_nested(300), **answered("1", "- jsonSchema: s")},
    "nested-when": {
        "models/candidate.yaml": "id: candidate\nprovider: scripted\n"
        f"responses: [{{when: '{'(' * 5000}', answer: a}}]\n",
        **asked("Hi"),
    },
    "slow-when": {
        "models/candidate.yaml": "id: candidate\nprovider: scripted\n"
        "responses: [{when: '(a+)+$', answer: a}]\n",
        **asked(CATASTROPHE),
    },
    "slow-expression": answered("1", "- expr: 9 ** 9 ** 9 ** 9 > 1"),
    "doubling-replacements": {
        "tests/t.md": f"---\nreplacements:\n{DOUBLES}  a60: x\n---\n# 👤\n\n{{{{a0}}}}\n"
        "\n---\n\nGood?\n"
    },
    "many-combinations": {
        "tests/t.md": "---\nreplacements: "
        + json.dumps({name: list(range(300)) for name in "abcd"})
        + "\n---\n# 👤\n\n{{a}}{{b}}{{c}}{{d}}\n\n---\n\nOk?\n"
    },
    **{f"template-{name}": asked(text) for name, text in TEMPLATES.items()},
    **{
        f"schema-{name}": answered(answer, f"- jsonSchema: {json.dumps(schema)}")
        for name, (schema, answer) in SCHEMAS.items()
    },
}

PROMPTFOO = "prompts: {prompts}\nproviders: [echo]\ntests:\n  - vars: {{a: {vars}}}\n"
NEMO = {
    "config": {
        "type": "custom",
        "tasks": {
            "t": {
                "type": "completion",
                "params": {"template": {"messages": [{"role": "user", "content": "{{item.q}}"}]}},
                "metrics": {
                    "m": {"type": "string-check", "params": {"check": ["a", "equals", "a"]}}
                },
                "dataset": {"files_url": "@FILE@"},
            }
        },
    }
}


def _nemo(file: str) -> str:
    return json.dumps(NEMO).replace("@FILE@", file)


IMPORTS: dict[str, tuple[str, str, dict[str, Content]]] = {
    "promptfoo-file-outside": (
        "promptfoo",
        "c.yaml",
        {"c.yaml": PROMPTFOO.format(prompts=f"['file://{OUTSIDE}/secret.txt']", vars="x")},
    ),
    "promptfoo-relative-outside": (
        "promptfoo",
        "c.yaml",
        {"c.yaml": PROMPTFOO.format(prompts="['{{a}}']", vars="file://../../outside/secret.txt")},
    ),
    "promptfoo-linked": (
        "promptfoo",
        "c.yaml",
        {
            "c.yaml": PROMPTFOO.format(prompts="['file://p.txt']", vars="x"),
            "p.txt": Link(f"{OUTSIDE}/secret.txt"),
        },
    ),
    "promptfoo-many": (
        "promptfoo",
        "c.yaml",
        {
            "c.yaml": "prompts: ['{{a}}{{b}}{{c}}{{d}}']\ntests:\n  - vars: "
            + json.dumps({name: list(map(str, range(300))) for name in "abcd"})
        },
    ),
    "promptfoo-template-loop": (
        "promptfoo",
        "c.yaml",
        {"c.yaml": PROMPTFOO.format(prompts=json.dumps([TEMPLATES["loop"]]), vars="x")},
    ),
    "nemo-file-outside": ("nemo", "j.json", {"j.json": _nemo(f"file://{OUTSIDE}/secret.jsonl")}),
    "nemo-relative-outside": (
        "nemo",
        "j.json",
        {"j.json": _nemo("../../outside/secret.jsonl")},
    ),
    "nemo-nested": ("nemo", "j.json", {"j.json": "[" * 100_000}),
    "evalsone-fifo": ("evalsone", "s.jsonl", {"s.jsonl": Fifo()}),
    "evalsone-endless": ("evalsone", "s.jsonl", {"s.jsonl": Link("/dev/zero")}),
    "openai-evals-fifo": ("openai-evals", "s.jsonl", {"s.jsonl": Fifo()}),
    "langbite-endless": ("langbite", "r.json", {"r.json": Link("/dev/zero")}),
    "otel-fifo": ("otel", "t.json", {"t.json": Fifo()}),
    "otel-endless": ("otel", "t.json", {"t.json": Link("/dev/zero")}),
    "otel-nested": ("otel", "t.json", {"t.json": "[" * 100_000}),
    "inspect-fifo": ("inspect", "l.eval", {"l.eval": Fifo()}),
    "lve-fifo": ("lve", "r", {"r/a/b/m/test.json": Fifo()}),
    "promptfoo-endless": ("promptfoo", "c.yaml", {"c.yaml": Link("/dev/zero")}),
}
