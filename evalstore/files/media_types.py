"""Media types of referenced files: by suffix from a table of our own, else from the bytes.

The tables of the machine are not used: they differ, and the media type is part of a file's
identity.
"""

from __future__ import annotations

from evalstore.core.errors import FileProblem

ADDRESS = "image/x-address"
"""A picture given by its URL, which is the content. It is not downloaded by evalstore."""

_TEXT = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "html": "text/html",
    "htm": "text/html",
    "json": "text/json",
    "jsonl": "text/jsonl",
    "yaml": "text/yaml",
    "yml": "text/yaml",
    "xml": "text/xml",
    "toml": "text/toml",
    "css": "text/css",
}
_PLAIN = (
    "txt text log rst tex ini cfg conf env py pyi js mjs ts tsx jsx c h cc cpp hpp cs java kt go "
    "rs rb php pl sh bash zsh ps1 bat sql r swift scala lua dart vue svelte srt vtt diff patch tf "
    "gradle cmake ipynb svg"
)
_BINARY = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "heic": "image/heic",
    "avif": "image/avif",
    "pdf": "application/pdf",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "opus": "audio/opus",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "mov": "video/quicktime",
    "zip": "application/zip",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "epub": "application/epub+zip",
    "rtf": "application/rtf",
}
BY_SUFFIX = {**dict.fromkeys(_PLAIN.split(), "text/plain"), **_TEXT, **_BINARY}


def media_type(path: str, data: bytes) -> str:
    """Return the media type of a file: `text/…` for everything that is shown as text.

    Raises `FileProblem` when it cannot be determined, and for a text that is not UTF-8.
    """
    suffix = path.rpartition("/")[2].rpartition(".")
    known = BY_SUFFIX.get(suffix[2].lower()) if suffix[1] else None
    if known and not known.startswith("text/"):
        return known
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if known:
            raise FileProblem(
                f"'{path}' is shown as text, but is not UTF-8", hint="save it as UTF-8"
            ) from error
        return _sniff(path, data)
    if known is None and b"\0" in data:
        return _sniff(path, data)
    if known is None and data.startswith(b"%PDF-"):  # may be ASCII throughout
        return "application/pdf"
    return known or "text/plain"


def _sniff(path: str, data: bytes) -> str:
    import filetype

    kind = filetype.guess(data)
    if kind is None:
        raise FileProblem(
            f"the media type of '{path}' is not known",
            hint="give the file a suffix such as .png, .pdf or .txt",
        )
    return str(kind.mime)
