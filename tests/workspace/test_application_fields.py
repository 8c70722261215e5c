"""The model files of applications: what runs, with which files and variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.core import hashing
from evalstore.core.errors import FileProblem, Problem
from evalstore.files.processes.application import Application
from evalstore.workspace.catalogue import read_catalogue
from evalstore.workspace.model_files import Model
from tests.builders import workspace_of

BOT = "def answer(messages):\n    return ''\n"
FILES = {
    "apps/bot.py": BOT,
    "apps/lib.py": "name = 1\n",
    "run.sh": "#!/bin/sh\n",
    ".env": "KEY=x\n",
    "apps/bad.py": "def (\n",
}


def read(path: Path, text: str) -> tuple[dict[str, Model], list[Problem]]:
    """The models and the problems of a workspace with one model file."""
    problems: list[Problem] = []
    workspace = workspace_of(path, {**FILES, "models/bot.yaml": text})
    return read_catalogue(workspace, problems).models, problems


def application(path: Path, text: str) -> Application:
    models, problems = read(path, text)
    assert problems == []
    actual = models["bot"].application
    assert actual
    return actual


def test_a_function_is_read_with_its_files(tmp_path: Path) -> None:
    text = "provider: python\ncode: apps/bot.py\nuses: [apps/lib.py]\nenv: [B_KEY, A_KEY]\n"
    actual = application(tmp_path, text)
    assert (actual.code, actual.arguments) == ("apps/bot.py:answer", ("apps/bot.py", "answer"))
    assert {path: data.decode() for path, data in actual.files.items()} == {
        "apps/bot.py": BOT,
        "apps/lib.py": "name = 1\n",
    }
    assert actual.variables == ("A_KEY", "B_KEY")


@pytest.mark.parametrize(
    ("code", "words", "files"),
    [
        ("./run.sh --mode x", ("./run.sh", "--mode", "x"), ["run.sh"]),
        ('["./run.sh", "a b"]', ("./run.sh", "a b"), ["run.sh"]),
        ("python3 apps/bot.py apps/nothing.py", ("python3", "apps/bot.py", "apps/nothing.py"),
         ["apps/bot.py"]),
        ("run.sh", ("run.sh",), []),
        ("/usr/bin/env x", ("/usr/bin/env", "x"), []),
        ("sh .env apps", ("sh", ".env", "apps"), []),
    ],
)  # fmt: skip
def test_the_files_of_a_command_line_belong_to_it(
    tmp_path: Path, code: str, words: tuple[str, ...], files: list[str]
) -> None:
    actual = application(tmp_path, f"provider: command\ncode: {code}\n")
    assert (actual.arguments, [*actual.files]) == (words, files)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("provider: python", "the application has no 'code'"),
        ("provider: python\ncode: apps/none.py", "file 'apps/none.py' not found"),
        ("provider: python\ncode: apps/bot.py:nothing", "'apps/bot.py' defines no function "
         "'nothing'"),
        ("provider: python\ncode: apps/bad.py", "'apps/bad.py:1' is not Python: invalid syntax"),
        ("provider: python\ncode: run.sh", "'run.sh' is not a Python file with a function"),
        ("provider: python\ncode: [apps/bot.py]", "'code' must be a text, not empty"),
        ("provider: python\ncode: ../w/apps/bot.py", "'../w/apps/bot.py' is not a path of a file "
         "in the workspace"),
        ("provider: python\ncode: apps/bot.py\nuses: [.env]", "'.env' is private, so it is not "
         "shown to a model"),
        ("provider: python\ncode: apps/bot.py\nuses: [/etc/passwd]", "'/etc/passwd' is not a path "
         "of a file in the workspace"),
        ("provider: python\ncode: apps/bot.py\nuses: [apps]", "file 'apps' not found"),
        ("provider: python\ncode: apps/bot.py\nenv: ['A=b']", "'env' holds what is not the name of "
         "a variable (entry 1)"),
        ("provider: python\ncode: apps/bot.py\nenv: [PATH]", "'PATH' cannot be in 'env'"),
        ("provider: python\ncode: apps/bot.py\nproviderModelCode: x", "an application has no "
         "'providerModelCode'"),
        ("provider: python\ncode: apps/bot.py\ncandidateOverrides: {providerModelCode: x}",
         "an application has no 'providerModelCode'"),
        ("provider: command\ncode: ''", "'code' must be a text, not empty"),
        ("provider: command\ncode: []", "'code' names no program"),
        ("provider: command\ncode: 'a \"b'", "'code' is not a command line: No closing quotation"),
        ("provider: command\ncode: ./none.sh", "file 'none.sh' not found"),
        ("provider: command\ncode: ../x.sh", "'../x.sh' has a '..' in it"),
        ("provider: command\ncode: x --key=sk-0123456789abcdefghij", "'code' holds a key, and "
         "command lines are stored"),
        ("provider: openai\nuses: [apps/lib.py]", "'uses' is only for applications"),
        ("provider: openai\nenv: [A]", "'env' is only for applications"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported(tmp_path: Path, text: str, message: str) -> None:
    _, problems = read(tmp_path / "w", text + "\n")
    assert [problem.message for problem in problems] == [message]


@pytest.mark.parametrize("start", ["{root}/run.sh", "sh {root}/run.sh", "sh --file={root}/run.sh"])
def test_an_absolute_path_into_the_workspace_is_refused(tmp_path: Path, start: str) -> None:
    root = (tmp_path / "w").resolve()
    (tmp_path / "link").symlink_to(root)
    for place in (root, tmp_path / "link"):
        _, problems = read(tmp_path / "w", f"provider: command\ncode: {start.format(root=place)}\n")
        assert len(problems) == 1
        assert problems[0].message.endswith("is an absolute path into the workspace")


def test_a_link_out_of_the_workspace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text(BOT)
    workspace_of(tmp_path / "w", FILES)
    (tmp_path / "w/apps/link.py").symlink_to(tmp_path / "outside.py")
    for text in ("code: apps/link.py", "code: apps/bot.py\nuses: [apps/link.py]"):
        _, problems = read(tmp_path / "w", f"provider: python\n{text}\n")
        assert [problem.message for problem in problems] == [
            "'apps/link.py' is outside the workspace"
        ]


def test_a_provider_file_may_limit_an_application_but_has_no_address(tmp_path: Path) -> None:
    problems: list[Problem] = []
    workspace = workspace_of(
        tmp_path,
        {
            **FILES,
            "providers/mine.yaml": "code: mine\ntype: python\nconcurrency: 2\n",
            "providers/far.yaml": "code: far\ntype: python\nbaseURL: http://x.example\n",
            "models/bot.yaml": "provider: mine\ncode: apps/bot.py\n",
            "models/far.yaml": "provider: far\ncode: apps/bot.py\n",
        },
    )
    models = read_catalogue(workspace, problems).models
    assert models["bot"].provider.concurrency == 2
    assert [problem.message for problem in problems] == [
        "the provider file names 'http://x.example', which applications do not use"
    ]


# --- identity


def version_of(path: Path, text: str, **files: str) -> tuple[str, str]:
    """The id of the model version, and what the user trusts."""
    workspace = workspace_of(path, {**FILES, **files, "models/bot.yaml": text})
    model = read_catalogue(workspace, []).models["bot"]
    assert model.application
    described = hashing.describe_model(model.version("candidate"))
    return hashing.identify(described)[0], model.application.digest


BASE = "provider: python\ncode: apps/bot.py\nuses: [apps/lib.py]\n"


@pytest.mark.parametrize(
    ("text", "files", "same"),
    [
        (f"{BASE}description: x\ncosts: [{{costPerCall: 1}}]\n", {}, (True, True)),
        (f"{BASE}providerOptions: {{a: 1}}\n", {}, (False, True)),
        (f"{BASE}env: [A_KEY]\n", {}, (False, False)),
        ("provider: python\ncode: apps/bot.py\n", {}, (False, False)),
        (BASE, {"apps/lib.py": "name = 2\n"}, (False, False)),
        (BASE, {"apps/bot.py": f"{BOT}\n"}, (False, False)),
        (BASE, {"apps/other.py": ""}, (True, True)),
    ],
)
def test_what_is_part_of_the_version_and_of_the_trust(
    tmp_path: Path, text: str, files: dict[str, str], same: tuple[bool, bool]
) -> None:
    before, after = version_of(tmp_path / "a", BASE), version_of(tmp_path / "b", text, **files)
    assert (before[0] == after[0], before[1] == after[1]) == same


def test_the_version_of_an_application_is_pinned(tmp_path: Path) -> None:
    """A change of this id would have every stored answer of an application asked again."""
    assert version_of(tmp_path, BASE)[0] == "05fc5ce2322b963b9b9a051dc1e201f8"


def test_files_of_an_application_differ_from_a_file_that_describes_it() -> None:
    """The hash that is trusted is that of no file that Python can run."""
    actual = Application("python", "a.py:answer", ("a.py", "answer"), {"a.py": b""})
    other = Application("command", "a.py:answer", ("a.py", "answer"), {"a.py": b""})
    assert len({actual.digest, other.digest, actual.hashes["a.py"]}) == 3
    with pytest.raises((SyntaxError, ValueError)):
        compile(b"\0evalstore application\0{}", "a.py", "exec")


def test_an_application_needs_access_to_files() -> None:
    from evalstore.workspace.model_files import read_model

    with pytest.raises(FileProblem, match="applications cannot be read here"):
        read_model("provider: python\ncode: a.py\n", {}, "bot")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("python3 ../../w/apps/bot.py", "'../../w/apps/bot.py' has a '..' in it"),
        ("make -C {root} go", "is an absolute path into the workspace"),
        ('["sh", "-c", ". {root}/run.sh"]', "is an absolute path into the workspace"),
        ("x -I{root}/apps", "is an absolute path into the workspace"),
        ("x --x=a,{root}/apps", "is an absolute path into the workspace"),
    ],
)
def test_a_command_line_does_not_lead_into_the_workspace(
    tmp_path: Path, code: str, message: str
) -> None:
    _, problems = read(tmp_path, f"provider: command\ncode: {code.format(root=tmp_path)}\n")
    assert [problem.message.endswith(message) for problem in problems] == [True]
