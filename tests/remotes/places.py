"""Empty places for remotes of every kind."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from evalstore.remotes.buckets import BucketFiles, open_bucket
from evalstore.remotes.layout import FolderFiles, RemoteFiles
from evalstore.remotes.sftp import SftpFiles
from evalstore.workspace.settings.remotes import read_url

RecordPlace = Callable[[], RemoteFiles]
"""Opens the same place again, as another program does."""
ODD = "o d*d[x]\"q'\\#é"
"""A folder whose name has all that means something in a pattern, a URL or a command."""
_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")
_S3_SERVER = """\
import logging
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

storage = DomainDispatcherApplication(create_backend_app)

def application(request, start_response):
    # Google's protocol is that of S3 with another condition for a new object.
    if request.get("HTTP_X_GOOG_IF_GENERATION_MATCH") == "0":
        request["HTTP_IF_NONE_MATCH"] = "*"
    return storage(request, start_response)

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = make_server("127.0.0.1", 0, application, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


def sftp_command(*options: str) -> list[str]:
    """The command that talks to a server process of this machine, without SSH."""
    server = next((path for path in _SERVERS if Path(path).exists()), None)
    if server is None or shutil.which("sftp") is None:
        pytest.skip("sftp or sftp-server of OpenSSH is not installed")
    return ["sftp", "-b", "-", "-D", " ".join([server, *options])]


def sftp_files(root: Path, *options: str) -> SftpFiles:
    """A remote in a folder through `sftp`."""
    return SftpFiles(f"sftp://host{root}", str(root), sftp_command(*options))


@contextmanager
def s3_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with the protocol of S3, with the bucket `bucket`, set in the environment.

    It is set as that of Google Cloud Storage, too: the emulators of it that can be installed have
    no XML interface to write with, which obstore uses.
    """
    for name in ("moto", "flask", "flask_cors", "boto3"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} of tools/readers-requirements.txt is not installed")
    command = [sys.executable, "-c", _S3_SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        with urlopen(Request(f"{url}/bucket", method="PUT")):
            set_s3(monkeypatch, url)
            set_gs(monkeypatch, url)
        yield url
        process.kill()


def set_s3(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Set the variables that obstore reads."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the-key-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-secret-key")


def set_gs(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Set the variables that obstore reads for Google Cloud Storage."""
    monkeypatch.setenv("GOOGLE_BASE_URL", url)
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "the-token")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")


def s3_files(address: str, patience: float = 60.0) -> BucketFiles:
    """A remote in a bucket of the server of the environment."""
    return open_bucket(read_url(address), os.environ, patience)


def place_of(kind: str, root: Path) -> RecordPlace:
    """A place below a folder, or in memory, or in the bucket `bucket`."""
    if kind == "folder":
        return lambda: FolderFiles(root / ODD)
    if kind == "sftp":
        sftp_command()
        return lambda: sftp_files(root / ODD)
    if kind in ("s3", "gs", "az"):
        # The bucket is that of all tests of a process.
        return lambda: s3_files(f"{kind}://bucket/o%20d*d/é/{root.name}")
    from obstore.store import LocalStore, MemoryStore

    if kind == "local":
        return lambda: BucketFiles(LocalStore(root / "bucket", mkdir=True), "local")
    memory = MemoryStore()
    return lambda: BucketFiles(memory, "memory")
