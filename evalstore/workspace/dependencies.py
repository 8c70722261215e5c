"""Whether the dependencies of a test file are unchanged since it was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalstore.checks.registry import is_installed
from evalstore.errors import FileProblem
from evalstore.files.datasets import DatasetSpec

if TYPE_CHECKING:
    from evalstore.workspace.file_references import References
    from evalstore.workspace.testfiles.context import Definitions


class CurrentDependencies:
    """Compares the recorded dependencies of files with the current ones."""

    def __init__(self, library: Definitions, references: References) -> None:
        self.library = library
        self.references = references
        self._ids: dict[str, Any] = {}

    def is_same(self, path: str, name: str, ids: Any) -> bool:
        """Return whether a dependency of a test file still has these ids."""
        kind, _, rest = name.partition(":")
        try:
            if kind == "package":
                return is_installed(rest) is ids
            if kind == "file":
                return self.references.identify(rest, path) == str(ids)
            if kind == "dataset":
                return self.references.identify_data(DatasetSpec(rest), path) == str(ids)
        except FileProblem:
            return False
        if name not in self._ids:
            if kind in ("prompt", "evaluator"):
                known_prompts = (
                    self.library.prompts if kind == "prompt" else self.library.evaluator_prompts
                )
                self._ids[name] = list(known_prompts.get(rest, ()))
            else:
                known = self.library.tools if kind == "tool" else self.library.schemas
                self._ids[name] = known.get(rest)
        return bool(self._ids[name] == ids)
