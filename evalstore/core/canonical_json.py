"""JSON in the one form that is hashed and stored: equal values have equal texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from evalstore.core.values import Json

_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,  # what comes from files cannot be; the check costs time
)


def _make_encode() -> Callable[[Json], str]:
    """Return the encoder's `encode`, without making its inner part again for every value."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _ENCODER.encode
    arguments = (None, _ENCODER.default, json.encoder.encode_basestring, None, ":", ",")
    pieces = make(*arguments, True, False, False)
    return lambda value: "".join(pieces(value, 0))


_encode = _make_encode()


def canonical_json(value: Json) -> str:
    """Encode a value with sorted keys and no insignificant space; non-ASCII stays as it is.

    Raises ValueError for NaN and infinities.
    """
    return _encode(value)


def is_deeper(value: Json, levels: int) -> bool:
    """Return whether a value has more than so many levels of mappings and lists."""
    level: list[Any] = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        inner = (item.values() if isinstance(item, dict) else item for item in level)
        level = [each for values in inner for each in values if isinstance(each, dict | list)]
    return bool(level)
