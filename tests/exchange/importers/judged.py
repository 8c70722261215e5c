"""What imported files come to: cases, what a model is asked, and verdicts on answers."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalstore.checks.check_verdict import HeldConversation, judge_by_checks
from evalstore.core.values import Case, Reply
from evalstore.files.datasets import Dataset, DatasetSpec, read_dataset
from evalstore.workspace.testfiles.expansion import expand_test
from evalstore.workspace.testfiles.parser import parse_test
from tests.builders import library

if TYPE_CHECKING:
    from evalstore.exchange.importers.base import Imported
    from evalstore.workspace.testfiles.context import ExpandedFile


def only(result: Imported) -> str:
    """The path of the test file, when there is one."""
    paths = [name for name in result.files if name.endswith(".md")]
    assert len(paths) == 1, result.left
    return paths[0]


def expansion(result: Imported, path: str | None = None) -> ExpandedFile:
    """What one of the test files comes to, with the data beside it."""
    path = path or only(result)
    folder = path.rpartition("/")[0]

    def open_data(spec: DatasetSpec, _file: str) -> tuple[Dataset, str]:
        data = result.files[f"{folder}/{spec.path}"]
        return read_dataset(spec, lambda: io.BytesIO(data)), "digest"

    test = parse_test(path, result.files[path].decode())
    return expand_test(test, replace(library(), open_data=open_data))


def cases(expanded: ExpandedFile) -> tuple[Case, ...]:
    assert expanded.file is not None, expanded.problems
    return tuple(expanded.file.cases)


def content(expanded: ExpandedFile, id: str) -> Any:
    return json.loads(expanded.contents[id][1])


def verdict(expanded: ExpandedFile, *sessions: Sequence[str], case: int = 0) -> str:
    """The verdict of the checks of a case on the answers of its conversations."""
    evaluation = cases(expanded)[case].evaluation
    assert evaluation is not None
    held = [HeldConversation(tuple(Reply(answer) for answer in answers)) for answers in sessions]
    return judge_by_checks(content(expanded, evaluation)["checks"], held, {}).verdict
