"""Model files for models whose answers were recorded elsewhere, and that nobody can call here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from evalstore.catalogue import bare_model
from evalstore.formats.writing import file_name, unique
from evalstore.formats.yaml_text import block
from evalstore.values import RECORDED
from evalstore.workspace_catalogue import is_known_kind

if TYPE_CHECKING:
    from evalstore.formats.base import Recorded

_WORDS = (
    "# Its answers were recorded elsewhere, and it is never called. Name another provider to call\n"
    "# it: that makes it another model, and the recorded answers stay with this one.\n"
)


def write_models(recorded: Iterable[Recorded], known: Collection[str]) -> dict[str, bytes]:
    """The model files for those models of recorded answers that have no other description."""
    found: dict[str, bytes] = {}
    for id in dict.fromkeys(one.model for one in recorded):
        if id in known or id in ("", RECORDED) or bare_model(id, is_known_kind):
            continue
        path = unique(f"models/{file_name(id.replace('/', '--'))}", [one[:-5] for one in found])
        found[f"{path}.yaml"] = (_WORDS + block({"id": id, "provider": RECORDED})).encode()
    return found
