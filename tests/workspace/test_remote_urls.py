"""The addresses of remotes that are URLs."""

from __future__ import annotations

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.workspace.settings.remotes import RemoteUrl, read_url


@pytest.mark.parametrize(
    ("address", "expected", "form"),
    [
        ("s3://bucket", RemoteUrl("s3", "bucket", ""), "s3://bucket"),
        ("S3://bucket/a/b/", RemoteUrl("s3", "bucket", "/a/b"), "s3://bucket/a/b"),
        ("gs://b_1/é", RemoteUrl("gs", "b_1", "/é"), "gs://b_1/%C3%A9"),
        ("az://box/a%20b", RemoteUrl("az", "box", "/a b"), "az://box/a%20b"),
        ("sftp://host/x", RemoteUrl("sftp", "host", "/x"), "sftp://host/x"),
        ("ssh://ann@h.de:22/~/x", RemoteUrl("sftp", "h.de", "/~/x", "ann", 22), None),
        ("sftp://[::1]:22/x", RemoteUrl("sftp", "[::1]", "/x", "", 22), "sftp://[::1]:22/x"),
        ("sftp://h/a%25b%3F", RemoteUrl("sftp", "h", "/a%b?"), "sftp://h/a%25b%3F"),
    ],
)
def test_a_url_has_one_form(address: str, expected: RemoteUrl, form: str | None) -> None:
    read = read_url(address)
    assert read == expected
    assert read.address == (form or "sftp://ann@h.de:22/~/x")
    assert read_url(read.address) == read


@pytest.mark.parametrize(
    "address",
    [
        *("s3://", "s3:///x", "s3://-b/x", "s3://b c/x", "s3://b\n/x", "s3://b:80/x"),
        *("sftp://", "sftp://host", "sftp://host/", "sftp:///x", "sftp://-oProxyCommand=x/y"),
        *("sftp://-l@host/x", "sftp://a b@host/x", "sftp://a@b@host/x", "sftp://host$(x)/y"),
        *("sftp://host:0/x", "sftp://host:99999/x", "sftp://host:-1/x", "sftp://host:/x"),
        *("sftp://h/a%0Ab", "sftp://h/a\nb", "sftp://h/a%00", "sftp://h/%ff", "sftp://[::1/x"),
        *("s3://b/../c", "s3://b/%2e%2e/c", "s3://b/./c", "s3://b//c", "s3://b/a%2F..%2Fc"),
        *("s3://b/x?versionId=1", "s3://b/x#y", "sftp://h/" + "x" * 501, "sftp://h/" + "é" * 251),
        *("http://h/x", "memory:///x", "/x", "s3:/b"),
    ],
)
def test_what_could_mean_something_else_is_refused(address: str) -> None:
    with pytest.raises(EvalstoreError, match="cannot be the address of a remote"):
        read_url(address)


@pytest.mark.parametrize(
    "address", ["s3://id:hunter2@bucket/x", "s3://hunter2@bucket", "sftp://ann:hunter2@host/x"]
)
def test_a_password_in_an_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(EvalstoreError, match="must not contain a password") as caught:
        read_url(address)
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"
