"""Attack: templates that reach for Python, and texts that reach for the terminal."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.builders import tree
from tests.endpoint import Answer, completion, failure
from tests.hostile.campaign.nasty_files import asked
from tests.hostile.campaign.trial import Attack, Trial
from tests.hostile.campaign.workspaces import loopback

GLOBALS = "__globals__['__builtins__']['__import__']('os').system('touch @RAN@/it')"
ROOTS = (
    *("''", "[]", "n", "self", "cycler", "joiner", "namespace", "lipsum", "range", "dict"),
    *("loop", "caller", "varargs", "item", "n.format", "''.join", "_", "undefined", "true", "1"),
)
PATHS = (
    "__class__",
    "__class__.__mro__",
    "__class__.__base__.__subclasses__()",
    f"__init__.{GLOBALS}",
    GLOBALS,
    "__init__.__globals__",
    "_TemplateReference__context",
    "gi_frame.f_globals",
    "cr_frame",
    "func_globals",
    "__code__.co_consts",
    "__reduce_ex__(2)",
)
FORMS = (
    "{root}.{path}",
    "({root})|attr('{first}')",
    "{root}['{first}']",
    "'{{0.{path}}}'.format({root})",
    "'{{a.{path}}}'.format_map({{'a': {root}}})",
    "[{root}]|map(attribute='{path}')|list",
    "({root}|list)|groupby('{first}')",
    "{root}|pprint",
    "[{root}]|join",
    "'%s' % {root}",
    "{root}|tojson",
    "[{root}]|sort(attribute='{path}')|list",
    "'{{0!r}}'.format({root})",
)
LEAKS = (
    *("<class 'object'>", "<class 'type'>", "<class 'str'>", "<function", "<module", "<built-in"),
    *("<bound method", " at 0x", "root:x:0"),
)
"""What only a template that has left the sandbox can bring into a text."""
CONTROLS = ("\x1b[31mred", "\x9b2J", "\u202eabc", "\u2066abc", "\x07", "a\rb", "\x1b]0;t\x07")
COMMANDS = (
    *(("check",), ("status", "--explain"), ("run", "--fail-on", "none"), ("log",), ("show",)),
    *(("ls", "cases"), ("ls", "tests"), ("ls", "tags"), ("ls", "tools"), ("stats",)),
    *(("log", "--failures"), ("grep", "abc"), ("stats", "--by", "tag,file"), ("ls", "models")),
)


def attempt(trial: Trial) -> None:
    """Either way."""
    is_template = trial.chance.random() < 0.5 if trial.name == "random" else "SSTI" in trial.name
    (_reach_for_python if is_template else _reach_for_the_terminal)(trial)


def payload(chance: Random) -> str:
    """An expression that would show or do what no template may."""
    root, path = chance.choice(ROOTS), chance.choice(PATHS)
    form = chance.choice(FORMS)
    return form.format(root=root, path=path, first=path.split(".", maxsplit=1)[0])


def _reach_for_python(trial: Trial) -> None:
    expression = payload(trial.chance).replace("@RAN@", str(trial.ran))
    shown = f"Question. {{{{ {expression} }}}}"
    place = trial.chance.choice(("shown", "value", "check", "where", "message", "prompt"))
    files: dict[str, Any] = dict(loopback(trial))
    if place == "shown":
        files |= asked(shown)
    elif place == "value":
        files |= asked("{{ n }}", replacements={"n": shown})
    elif place == "check":
        files |= asked("Question.", f"- contains: {json.dumps(shown)}\n- expr: {expression}")
    elif place == "where":
        rows = json.dumps({"q": "a"}) + "\n"
        spec = {"path": "d.jsonl", "where": expression}
        files |= {"tests/d.jsonl": rows, **asked("{{ q }}", dataset=spec)}
    elif place == "message":
        files["tests/t.md"] = f"---\nmessages: {json.dumps(shown)}\n---\n---\n\nGood?\n"
    else:
        files |= {"prompts/p.md": shown + "\n", **asked("Question.", systemPrompts=["p"])}
    trial.commands.append(f"# {place}: {expression}")
    tree(trial.workspace, files)
    for argv in (("check",), ("run", "--fail-on", "none")):
        ended = trial.run(*argv)
        _search(trial, ended.stdout)
    _search(trial, json.dumps([received.body for received in trial.server.received]))
    trial.figures["templates"] += 1


def _search(trial: Trial, text: str) -> None:
    for leak in LEAKS:
        if leak in text:
            at = text.index(leak)
            trial.note("a template shows an object", text[max(0, at - 100) : at + 100])


def _reach_for_the_terminal(trial: Trial) -> None:
    chance = trial.chance
    bad = chance.choice(CONTROLS)
    fails, calls = chance.random() < 0.2, chance.random() < 0.3

    def reply(body: dict[str, Any]) -> Answer:
        if body["model"] == "judge":
            feedback = {"pass": False, "feedback": bad, "label": bad, "reasoning": bad}
            return completion({"content": json.dumps(feedback)}, model=bad, id=bad)
        if fails:
            return failure(400, bad, bad)
        call = {"name": bad, "arguments": json.dumps({bad: bad})}
        message = {
            "content": bad,
            "tool_calls": [{"id": bad, "type": "function", "function": call}],
        }
        return completion(message if calls else {"content": bad}, model=bad)

    trial.server.reply = reply
    head = {"id": f"t{bad}", "tags": [f"x{bad}"], "replacements": {"n": [bad, "b", f"{bad}{bad}"]}}
    if chance.random() < 0.5:
        head.pop(chance.choice(("id", "tags")))
    evaluation = chance.choice(
        (f"Good? {bad}", "~~~checks\n- contains: zzz\n- jsonSchema: {}\n~~~")
    )
    text = f"---\n{json.dumps(head)}\n---\n# 👤\n\nQuestion {{{{n}}}}\n\n---\n\n{evaluation}\n"
    # Not with "\r" or NUL: the first is a line end of YAML, the second no character of it.
    name = f"tests/{chance.choice(('t', 'a' + bad.replace('/', '')))}.md"
    tool = {"id": "t", "name": bad, "description": bad, "parameters": {"type": "object"}}
    files = {**loopback(trial), name: text}
    if chance.random() < 0.3:
        files["tools/t.yaml"] = json.dumps(tool)
    tree(trial.workspace, files)
    trial.run("run", "--fail-on", "none")
    for argv in chance.sample(COMMANDS, 6):
        trial.run(*argv)
    trial.figures["texts"] += 1


ATTACK = Attack(
    "escapes",
    "templates that reach for Python, texts that reach for the terminal",
    attempt,
    names=("SSTI", "controls"),
)
