"""What system prompts are called, for pages that read nothing but the store."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.operations.opening import open_catalogue
from evalstore.operations.results import prompt_label

if TYPE_CHECKING:
    from evalstore.operations.orders import Where


def name_prompts(where: Where, ids: Collection[str | None]) -> dict[str | None, str]:
    """The names that files use for system prompts now, else the first digits of their ids.

    No file is read when there are no ids.
    """
    if not ids:
        return {}
    with suppress(EvalstoreError), open_catalogue(where) as desk:
        return {id: prompt_label(desk, id) for id in ids}
    return {id: "no prompt" if id is None else id[:8] for id in ids}
