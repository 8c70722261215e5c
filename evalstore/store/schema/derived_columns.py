"""The columns of a row that repeat a part of its content, so that it is found by them.

They are computed from the content alone. So a row that comes from somewhere else needs only its
content, and `fsck` compares the columns with it.
"""

from __future__ import annotations

from typing import Any

from evalstore.core import deserialize, hashing
from evalstore.core.values import Json


def derive_columns(kind: str, content: Json) -> dict[str, Any]:
    """Return the columns beside `id`, `content` and `data`; ids are in digits.

    Raises ValueError, KeyError or TypeError for a content that is not of its kind.
    """
    if kind == "session":
        return {
            "question": hashing.question_id(deserialize.restore_question(content)),
            "started": content["started"],
            "token_limit": content.get("limit"),
        }
    if kind == "judgement":
        return {
            "subject": hashing.subject_of(tuple(content["sessions"])),
            "evaluation": content["evaluation"],
            "evaluator": content["evaluator"],
            "started": content["started"],
            "verdict": content["verdict"],
            "score": content.get("score"),
        }
    if kind == "failure":
        return {"question": content.get("question"), "at": content["at"]}
    if kind == "run":
        return {"started": content["started"]}
    return {}
