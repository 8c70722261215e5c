"""Reads what model and provider files say of applications, keys and addresses."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import PurePosixPath
from typing import NamedTuple

from evalstore.checks.types.python import require_defined
from evalstore.core.errors import FileProblem
from evalstore.files.fields import Fields
from evalstore.files.processes.application import PYTHON, Application
from evalstore.providers.base_urls import find_secret, split_base_url

FIELDS = ("uses", "env")
"""Fields that only the model files of applications have."""
_NOT_FOR_APPLICATIONS = ("providerModelCode", "responses")
_FUNCTION = "answer"
"""The function of a file that names none."""
_MOST_FILES = 200
_MOST_BYTES = 100 * 2**20
_PARTS = re.compile(r"[\s=:,;'\"()&|<>]+")
"""Stands between the paths in a word of a command line."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = ("PATH", "HOME", "TMPDIR")
"""Variables that every application has anyway."""


class Programs(NamedTuple):
    """Access to the files of a workspace that applications run."""

    root: str
    """The real path of the workspace."""
    read: Callable[[str], bytes]
    """The bytes of a file by its path in the workspace; raises `FileProblem`."""


def read_application(
    fields: Fields, kind: str, address: str | None, programs: Programs | None
) -> Application:
    """Read the application of a model file. Raises `FileProblem`.

    `kind` is the type of the provider, `address` its base URL or the variable of its key.
    """
    for name in _NOT_FOR_APPLICATIONS:
        if fields.value(name) is not None:
            raise FileProblem(f"an application has no '{name}'", fields.line(name))
    for part in ("candidateOverrides", "evaluatorOverrides"):
        if "providerModelCode" in fields.mapping(part):
            raise FileProblem("an application has no 'providerModelCode'", fields.line(part))
    if address:
        raise FileProblem(
            f"the provider file names '{address}', which applications do not use",
            fields.line("provider"),
            hint="name the variables that the application reads under 'env' in the model file",
        )
    if programs is None:
        raise FileProblem("applications cannot be read here", fields.line("provider"))
    if fields.value("code") is None:
        example = "apps/bot.py" if kind == PYTHON else "./bot --mode test"
        raise FileProblem("the application has no 'code'", 1, hint=f"as in 'code: {example}'")
    read = _read_function if kind == PYTHON else _read_command
    code, arguments, paths = read(fields, programs)
    files: dict[str, bytes] = {}
    lines = dict.fromkeys(paths, fields.line("code"))
    for number, path in enumerate(fields.names("uses")):
        line = fields.line("uses", number)
        lines.setdefault(_require_plain(path, line), line)
    for path, line in lines.items():
        try:
            files[path] = programs.read(path)
        except FileProblem as problem:
            hint = f"the path is relative to the workspace, '{programs.root}'"
            is_missing = problem.message.endswith("not found")
            raise FileProblem(
                problem.message, line, hint=hint if is_missing else problem.hint
            ) from problem
    if len(files) > _MOST_FILES or sum(map(len, files.values())) > _MOST_BYTES:
        most = f"{_MOST_FILES} files, of {_MOST_BYTES // 2**20} MiB together"
        raise FileProblem(
            f"an application has at most {most}",
            fields.line("uses"),
        )
    if kind == PYTHON:
        path, function = arguments
        line = fields.line("code")
        require_defined({"file": path, "function": function}, files[path], line)
    return Application(kind, code, arguments, files, _read_variables(fields))


def _read_function(
    fields: Fields, _programs: Programs
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Read the function; returns its code, its path with its name, and the paths of the files."""
    text = fields.text("code") or ""
    path, colon, function = text.rpartition(":")
    if not colon:
        path, function = text, _FUNCTION
    if not path.endswith(".py") or not function.isidentifier():
        raise FileProblem(
            f"'{text}' is not a Python file with a function",
            fields.line("code"),
            hint="as in 'code: apps/bot.py' or 'code: apps/bot.py:answer'",
        )
    path = _require_plain(path, fields.line("code"))
    return f"{path}:{function}", (path, function), (path,)


def _read_command(
    fields: Fields, programs: Programs
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Read the command line; returns it, its words, and the workspace's files among them."""
    line = fields.line("code")
    if isinstance(fields.value("code"), list):
        words = fields.texts("code")
    else:
        try:
            words = shlex.split(fields.text("code") or "")
        except ValueError as error:
            raise FileProblem(f"'code' is not a command line: {error}", line) from error
    if not words or not words[0]:
        raise FileProblem("'code' names no program", line, hint="as in 'code: ./bot --mode test'")
    if any(map(looks_like_key, words)):
        raise FileProblem(
            "'code' holds a key, and command lines are stored",
            line,
            hint="name the variable that holds the key under 'env'",
        )
    for word in words:
        _require_outside(word, programs.root, line)
    program = words[0]
    paths = []
    if "/" in program and not os.path.isabs(program):  # noqa: PTH117 - a text of a file
        paths.append(_require_plain(program, line))
        words[0] = f"./{paths[0]}"
    paths += _find_files(words[1:], programs)
    return shlex.join(words), tuple(words), tuple(dict.fromkeys(paths))


def _require_outside(word: str, root: str, line: int) -> None:
    """Raise for a path that leads into the workspace: its content would not be looked at."""
    for part in (word, *_PARTS.split(word)):
        leads_in = part.startswith("/") and f"{os.path.realpath(part)}/".startswith(f"{root}/")
        if leads_in or (len(root) > 1 and root in part):
            raise FileProblem(
                f"'{shlex.quote(part)}' is an absolute path into the workspace",
                line,
                hint="write it relative to the folder of the workspace",
            )
        if ".." in part.split("/"):
            raise FileProblem(
                f"'{shlex.quote(part)}' has a '..' in it",
                line,
                hint="write paths relative to the folder of the workspace, without '..'",
            )


def _find_files(words: Iterable[str], programs: Programs) -> list[str]:
    """Find the words that are paths of files of the workspace."""
    paths = []
    for word in words:
        if not word or word.startswith("-"):
            continue
        with suppress(FileProblem):
            path = _require_plain(word, 1)
            if path == word.removeprefix("./"):
                programs.read(path)
                paths.append(path)
    return paths


def _require_plain(path: str, line: int) -> str:
    """Return a path below the workspace's folder; raises `FileProblem` for another one."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or path.endswith("/"):
        raise FileProblem(
            f"'{path}' is not a path of a file in the workspace",
            line,
            hint="write it relative to the folder of the workspace, without '..'",
        )
    return "/".join(parts)


def _read_variables(fields: Fields) -> tuple[str, ...]:
    """Read the names of the variables that the application is handed."""
    names = fields.names("env")
    for number, name in enumerate(names):
        line = fields.line("env", number)
        if not _VARIABLE.fullmatch(name):
            raise FileProblem(
                f"'env' holds what is not the name of a variable (entry {number + 1})",
                line,
                hint="name the variable only; its value stays in your environment, or in .env",
            )
        if name in _RESERVED:
            raise FileProblem(
                f"'{name}' cannot be in 'env'", line, hint="every application has it anyway"
            )
    return tuple(sorted(names))


# --- the address and the key variable of a provider, neither of which may hold a key


SERVICES = {
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "groq": "GROQ_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
    "cohere": "COHERE_API_KEY",
    "xai": "XAI_API_KEY",
}
"""The default variables of the keys of services."""
USUAL_KEYS = ("openai", "openrouter")
"""Kinds whose provider files need not name the variable; litellm looks up its own kinds."""

_KEY = re.compile(
    r"(sk|pk|rk|gsk|hf|xai|ghp|r8|nvapi|pplx|eyJ|AIza)[A-Za-z0-9_]{16,}"
    r"|(?=\S*[a-z])(?=\S*[A-Z])(?=\S*[0-9])[A-Za-z0-9]{24,}\Z"
)
"""Matches keys that could be mistaken for the name of a variable."""
_KEY_OF_SERVICE = re.compile(
    r"((sk|pk|rk|gsk|hf|xai|ghp|r8|nvapi|pplx)[-_]|eyJ|AIza)(?=\S*[0-9])[A-Za-z0-9_-]{16,}"
)


def read_key_variable(fields: Fields) -> str | None:
    """Read the name of the variable with the key; a key itself is refused and not shown."""
    name = fields.text("apiKeyEnvVar")
    if name is not None and (not _VARIABLE.fullmatch(name) or _KEY.match(name)):
        raise FileProblem(
            "'apiKeyEnvVar' is not the name of a variable",
            fields.line("apiKeyEnvVar"),
            hint="put the key into the environment, or into .env as NAME=key, and the NAME here",
        )
    return name


def looks_like_key(word: str) -> bool:
    """Return whether a word of a command line, or what follows a `=` in it, looks like a key."""
    return any(_KEY_OF_SERVICE.match(part) for part in (word, word.rpartition("=")[2]))


def check_base_url(base_url: str, line: int) -> None:
    """Raise `FileProblem` for an invalid address, or one that contains a secret."""
    if secret := find_secret(base_url):
        raise FileProblem(
            f"'baseURL' holds {secret}, and base URLs are stored",
            line,
            hint="name the variable that holds the key in 'apiKeyEnvVar'",
        )
    if not re.match(r"https?://[^\s]+$", base_url):
        raise FileProblem("'baseURL' must start with http:// or https://", line)
    if split_base_url(base_url) is None:
        hint = "write it as in 'http://localhost:8000/v1'; other letters than a-z as 'xn--…'"
        raise FileProblem("'baseURL' names no host", line, hint=hint)
