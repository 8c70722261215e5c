from __future__ import annotations

import mimetypes

import pytest

from evalstore.core.errors import FileProblem
from evalstore.files.access import BY_SUFFIX, media_type


@pytest.mark.parametrize(
    ("path", "data", "kind"),
    [
        ("a.png", b"x", "image/png"),
        ("docs/A.PDF", b"x", "application/pdf"),
        ("a.mp3", b"x", "audio/mpeg"),
        ("a.docx", b"x", BY_SUFFIX["docx"]),
        ("a.md", b"x", "text/markdown"),
        ("a.json", b"{}", "text/json"),
        ("a.csv", b"a,b", "text/csv"),
        ("a.py", b"x", "text/plain"),
        ("noext", b"plain", "text/plain"),
        ("v1.2/noext", b"plain", "text/plain"),
        ("a.zzz", "é".encode(), "text/plain"),
        ("pdf", b"%PDF-1.4 x", "application/pdf"),
        ("picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff", "image/png"),
    ],
)
def test_the_suffix_decides_else_the_bytes(path: str, data: bytes, kind: str) -> None:
    assert media_type(path, data) == kind


@pytest.mark.parametrize("data", [b"\xff\xfe\xfd", b"a\0b"])
def test_an_undetectable_format_is_refused(data: bytes) -> None:
    with pytest.raises(FileProblem, match=r"the media type of 'a\.zzz' is not known"):
        media_type("a.zzz", data)


def test_a_text_must_be_utf_8() -> None:
    with pytest.raises(FileProblem, match="shown as text, but is not UTF-8"):
        media_type("a.txt", b"\xe9")


def test_the_tables_of_the_machine_are_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mimetypes, "guess_type", None)
    assert media_type("a.webp", b"x") == "image/webp"
