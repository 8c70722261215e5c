"""Whose key a key is: the names that a file of allowed signers gives to its public half.

Only what is well-formed counts: whatever cannot be read here gives no name.
"""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import Error, a2b_base64

_PRIVATE = re.compile(
    rb"-----BEGIN OPENSSH PRIVATE KEY-----(.+)-----END OPENSSH PRIVATE KEY-----", re.DOTALL
)
_MAGIC = b"openssh-key-v1\0"
_FIELD = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*")+')
"""A field of a line; there may be spaces between quotes."""


def find_public_half(content: bytes) -> str | None:
    """Return the public key in the file of a private or a public one, in base64.

    None if it has none, as files of private keys that older programs have made.
    """
    found = _PRIVATE.search(content)
    if found:
        return _read_private(found[1])
    fields = content.split()
    is_public = len(fields) > 1 and not content.startswith(b"-----")
    return fields[1].decode("ascii", "replace") if is_public else None


def _read_private(text: bytes) -> str | None:
    """Return the public key of a private one, which is not encrypted with it."""
    try:
        data = a2b_base64(text)
    except Error:
        return None
    if not data.startswith(_MAGIC):
        return None
    position, field = len(_MAGIC), b""
    for number in range(4):  # the cipher, the derivation and its options, then the public key
        position += 4 * (number == 3)  # the number of keys
        length = int.from_bytes(data[position : position + 4], "big")
        position += 4 + length
        field = data[position - length : position]
    return b64encode(field).decode() if 0 < position <= len(data) else None


def find_names(signers: bytes, key: str) -> frozenset[str]:
    """Return the names that a file of allowed signers gives to a public key."""
    names = set[str]()
    for line in signers.decode(errors="replace").splitlines():
        fields = _FIELD.findall(line)
        if line.lstrip().startswith("#") or key not in fields[2:]:
            continue
        options = fields[1 : fields.index(key, 2) - 1]
        if not any(option.lower().startswith("cert-authority") for option in options):
            names.update(fields[0].replace('"', "").split(","))
    return frozenset(names)
