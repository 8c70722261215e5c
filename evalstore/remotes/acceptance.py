"""Which pushes of a remote count: those that are signed by an allowed signer, of trusted writers.

What a push that does not count has brought is as if the remote did not have it: nothing of it is
copied, and a push writes the same rows again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.canonical_json import canonical_json
from evalstore.core.errors import EvalstoreError, FileProblem, OutsideError
from evalstore.remotes.packs.signatures import (
    LARGEST_KEY,
    LARGEST_SIGNERS,
    AllowedSigners,
    SigningKey,
    find_public_half,
)
from evalstore.remotes.places.layout import sha256

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.remotes.indexes.indexes import IndexHeader
    from evalstore.workspace.folder import WorkspaceFolder
    from evalstore.workspace.settings.settings import PathSetting, RemoteSettings

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


# --- the files of keys that the settings of a remote name


def acceptance_of(workspace: WorkspaceFolder, name: str, remote: RemoteSettings) -> Acceptance:
    """Return which pushes of a remote count; raises `EvalstoreError`."""
    setting = remote.allowed_signers
    writers = frozenset(remote.trust)
    if setting is None:
        return Acceptance(writers=writers)
    path, content = _read(workspace, name, "allowedSigners", setting, LARGEST_SIGNERS)
    return Acceptance(AllowedSigners(content, str(path)), writers)


def signing_key_of(
    workspace: WorkspaceFolder, name: str, remote: RemoteSettings
) -> SigningKey | None:
    """Return the key that signs pushes to a remote; None if they need no signature.

    Raises `EvalstoreError`, also when they need one and no key is set.
    """
    if remote.sign is None:
        if remote.allowed_signers is None:
            return None
        place = _place(workspace, name, "allowedSigners", remote.allowed_signers)
        raise EvalstoreError(
            f"{place}: only pushes with a signature count, and no key is set to sign with",
            hint="add 'sign' with the path of your SSH key beside it, such as ~/.ssh/id_ed25519",
        )
    path, _ = _read(workspace, name, "sign", remote.sign, LARGEST_KEY)
    return SigningKey(path, _place(workspace, name, "sign", remote.sign))


def own_names_of(
    workspace: WorkspaceFolder, name: str, remote: RemoteSettings, rules: Acceptance
) -> frozenset[str]:
    """Return the names that the allowed signers of a remote give to the key of this machine.

    Raises `EvalstoreError` when the key cannot be read.
    """
    if remote.sign is None or rules.signers is None:
        return frozenset()
    path, content = _read(workspace, name, "sign", remote.sign, LARGEST_KEY)
    key = find_public_half(content)
    if key is None:
        beside = remote.sign._replace(path=f"{path}.pub")
        key = find_public_half(_read(workspace, name, "sign", beside, LARGEST_KEY)[1])
    return rules.signers.find_names(key) if key else frozenset()


_HINTS = {
    "sign": "'ssh-keygen -t ed25519' makes a key; a '.pub' file is enough if ssh-agent has the key",
    "allowedSigners": "each line of the file is 'NAME KEYTYPE KEY'; see ALLOWED SIGNERS in "
    "'man ssh-keygen'",
}


def _place(workspace: WorkspaceFolder, name: str, key: str, setting: PathSetting) -> str:
    return f"{workspace.config.name}:{setting.line}: remotes.{name}.{key}"


def _read(
    workspace: WorkspaceFolder, name: str, key: str, setting: PathSetting, largest: int
) -> tuple[Path, bytes]:
    """Return the absolute path and the bytes of a file that the workspace may use."""
    from evalstore.workspace.settings.remotes import folder_of  # loads a reader of YAML

    place = _place(workspace, name, key, setting)
    path = folder_of(workspace.root, setting.path)
    try:
        workspace.boundary.require(path, place)
    except OutsideError as error:
        raise OutsideError(
            str(error), hint="if you know it, allow it once with '--allow-outside'"
        ) from error
    try:
        return path, workspace.boundary.read(path, largest)
    except FileProblem as problem:
        raise EvalstoreError(f"{place}: '{path}': {problem.message}", hint=_HINTS[key]) from problem
