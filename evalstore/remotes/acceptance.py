"""Which pushes of a remote count: those that are signed by an allowed signer, of trusted writers.

What a push that does not count has brought is as if the remote did not have it: nothing of it is
copied, and a push writes the same rows again.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.errors import EvalstoreError, FileProblem, OutsideError, RemoteError
from evalstore.core.hashing import canonical_json
from evalstore.files.atomic_write import write_whole
from evalstore.remotes.layout import sha256

if TYPE_CHECKING:
    from evalstore.remotes.packs import IndexHeader
    from evalstore.workspace.folder import WorkspaceFolder
    from evalstore.workspace.settings.settings import PathSetting, RemoteSettings

UNSIGNED = "unsigned"
"""The reason for leaving out a push that no allowed signer has signed."""
UNTRUSTED = "untrusted"
"""The reason for leaving out a push of a writer who is not trusted."""
REASONS = {UNSIGNED: "not signed by an allowed signer", UNTRUSTED: "not trusted"}
"""In words."""
HINTS = {
    UNSIGNED: "set 'sign' to a key whose public half is in 'allowedSigners'",
    UNTRUSTED: "add the name to 'trust' of this remote, in the settings that its users share",
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


_HINTS = {
    "sign": "'ssh-keygen -t ed25519' makes a key; a '.pub' file is enough if ssh-agent has the key",
    "allowedSigners": "each line is 'NAME KEYTYPE KEY', as in 'man ssh-keygen'",
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


# --- signatures of index files, made and verified by ssh-keygen of OpenSSH


NAMESPACE = "evalstore"
LARGEST_SIGNATURE = 64 * 2**10
LARGEST_SIGNERS = 2**20
"""Bytes of a file of allowed signers."""
LARGEST_KEY = 2**20
PATIENCE = 60.0
"""Seconds for one call; a key of hardware waits to be touched."""
_MOST_PRINCIPALS = 16
_LONGEST_PRINCIPAL = 200
_DAMAGED = re.compile(r"/allowed:([0-9]+): ((?:invalid|bad|missing)\b[^\r\n]*)")


class SigningKey:
    """A key that signs index files: a private one, or a public one whose other half an agent has.

    Instances are called with the bytes to sign.
    """

    def __init__(self, path: Path, place: str) -> None:
        """`path` is absolute; `place` is the name of the setting in errors."""
        self._path = path
        self._place = place

    def __call__(self, data: bytes) -> bytes:
        """Return a signature; raises `EvalstoreError`."""
        with tempfile.TemporaryDirectory(prefix="evalstore-") as folder:
            # A file, because `ssh-keygen` would read a passphrase from its input.
            signed = Path(folder) / "index"
            write_whole(signed, data, durable=False)
            arguments = ["sign", "-f", str(self._path), "-n", NAMESPACE, str(signed)]
            ran = _run(arguments, b"")
            try:
                return signed.with_name("index.sig").read_bytes()
            except FileNotFoundError:
                raise self._problem(ran) from None

    def _problem(self, ran: subprocess.CompletedProcess[bytes]) -> EvalstoreError:
        text = ran.stderr.decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip("@ \r")]
        reason, hint = (
            (lines[-1][:200] if lines else f"ssh-keygen exited with {ran.returncode}"),
            None,
        )
        if "passphrase" in text:
            reason = "it has a passphrase"
            hint = "add the key to ssh-agent with ssh-add, and set 'sign' to its '.pub' file"
        elif "too open" in text or "UNPROTECTED" in text:
            reason, hint = "others can read it", f"chmod 600 '{self._path}'"
        elif "public key" in text:
            reason = "it is not an SSH key"
        elif "agent" in text:
            hint = "add the key to ssh-agent with ssh-add"
        return EvalstoreError(
            f"{self._place}: cannot sign with '{self._path}': {reason}", hint=hint
        )


class AllowedSigners:
    """Whose signatures count: the content of a file as `ssh-keygen` describes it."""

    def __init__(self, content: bytes, place: str) -> None:
        """`place` is the path of the file in errors. Raises `EvalstoreError` if it names nobody."""
        self.content = content
        self._place = place
        self.digest = sha256(content)
        lines = (line.strip() for line in content.splitlines())
        if b"\0" in content or not any(line and not line.startswith(b"#") for line in lines):
            raise EvalstoreError(f"{place}: it names no signer", hint=_FORM)

    def find_signer(self, data: bytes, signature: bytes, created: int | None) -> str | None:
        """Return the principal who has signed these bytes; None if no allowed one has.

        Keys must have been valid at the time of the push, in microseconds since 1970. Raises
        `EvalstoreError`.
        """
        time = []
        if created is not None:
            moment = datetime.fromtimestamp(created // 1_000_000, tz=UTC)
            time = [f"-Overify-time={moment:%Y%m%d%H%M%S}"]
        with self._files(signature) as (allowed, signed):
            files = ["-f", str(allowed), "-s", str(signed)]
            found = _run(["find-principals", *time, *files], b"")
            names = found.stdout.decode(errors="replace").splitlines()
            if found.returncode or not names:
                problem = _DAMAGED.search(found.stderr.decode(errors="replace"))
                if problem:
                    line, reason = problem[1], problem[2][:200]
                    raise EvalstoreError(
                        f"{self._place}:{line}: not a line of a signer: {reason}", hint=_FORM
                    )
                return None
            for name in names[:_MOST_PRINCIPALS]:
                if not name or name.startswith("-") or len(name) > _LONGEST_PRINCIPAL:
                    continue
                ran = _run(["verify", *time, *files, "-n", NAMESPACE, "-I", name], data)
                if ran.returncode == 0:
                    return name
        return None

    @contextmanager
    def _files(self, signature: bytes) -> Iterator[tuple[Path, Path]]:
        """Write what `ssh-keygen` reads: exactly the bytes whose digest is known."""
        with tempfile.TemporaryDirectory(prefix="evalstore-") as folder:
            allowed, signed = Path(folder) / "allowed", Path(folder) / "signature"
            write_whole(allowed, self.content, durable=False)
            write_whole(signed, signature, durable=False)
            yield allowed, signed


_FORM = "each line is 'NAME KEYTYPE KEY', as in 'ann@example.com ssh-ed25519 AAAA…'"


def _run(arguments: Sequence[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run `ssh-keygen -Y`; times are those of UTC, so that all machines agree."""
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC", "SSH_ASKPASS_REQUIRE": "never"}
    try:
        process = subprocess.Popen(
            ["ssh-keygen", "-Y", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # no terminal to ask for a passphrase
        )
    except FileNotFoundError:
        raise RemoteError(
            "signatures need OpenSSH's ssh-keygen, which is not installed",
            hint="install the system package: openssh-client or openssh",
        ) from None
    except OSError as error:
        raise RemoteError(f"ssh-keygen cannot be started: {error.strerror or error}") from None
    with process:
        try:
            output, errors = process.communicate(data, PATIENCE)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the helpers of hardware keys
            if isinstance(error, subprocess.TimeoutExpired):
                raise RemoteError(f"ssh-keygen did not end within {PATIENCE:g} seconds") from None
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)
