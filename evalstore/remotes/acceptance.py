"""Which pushes of a remote count: those that are signed by an allowed signer, of trusted writers.

What a push that does not count has brought is as if the remote did not have it: nothing of it is
copied, and a push writes the same rows again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.canonical_json import canonical_json
from evalstore.remotes.places.layout import sha256

if TYPE_CHECKING:
    from evalstore.remotes.indexes.indexes import IndexHeader
    from evalstore.remotes.packs.signatures import AllowedSigners

UNSIGNED = "unsigned"
"""The reason for leaving out a push that no allowed signer has signed."""
UNTRUSTED = "untrusted"
"""The reason for leaving out a push of a writer who is not trusted."""
REASONS = {UNSIGNED: "not signed by an allowed signer", UNTRUSTED: "not trusted"}
"""In words."""
HINTS = {
    UNSIGNED: "let 'sign' name a key of which 'allowedSigners' has the public half",
    UNTRUSTED: "add the name to 'trust' of this remote, where all who pull from it have it",
}
"""What makes a push count."""


class Decision(NamedTuple):
    """Whether a push counts, and why not."""

    writer: str
    """The principal who has signed it; otherwise what it says itself, which is not verified."""
    refusal: str | None = None
    """Why it does not count: one of `REASONS`; None if it does."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The rules of a remote; without any, all pushes count."""

    signers: AllowedSigners | None = None
    writers: frozenset[str] = frozenset()
    """The only ones whose pushes count; without any, those of all."""

    @property
    def requires_signatures(self) -> bool:
        """Return whether only pushes with a signature count."""
        return self.signers is not None

    @property
    def identity(self) -> str:
        """Return a text that is different for different rules; empty without any."""
        if self.signers is None and not self.writers:
            return ""
        signers = self.signers.digest if self.signers else None
        return sha256(
            canonical_json({"signers": signers, "writers": sorted(self.writers)}).encode()
        )

    def decide(self, data: bytes, header: IndexHeader | None, signature: bytes | None) -> Decision:
        """Return whether the push with these bytes counts; its header is None if it is damaged.

        Raises `EvalstoreError` when signatures cannot be verified.
        """
        writer = header.writer if header else ""
        if self.signers is not None:
            signer = None
            if signature is not None:
                created = header.created if header else None
                signer = self.signers.find_signer(data, signature, created)
            if signer is None:
                return Decision(writer, UNSIGNED)
            writer = signer
        return Decision(writer, UNTRUSTED if self.writers and writer not in self.writers else None)


ACCEPT_ALL = Acceptance()
