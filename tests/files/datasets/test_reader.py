from __future__ import annotations

import gzip
import io
import tracemalloc
from typing import BinaryIO

import pytest

from evalstore.core.errors import FileProblem
from evalstore.files.datasets import MOST_PROBLEMS, read_dataset
from tests.files.datasets.files import dataset, json_lines, place_and_message, problem, rows, spec

LINES = json_lines({"a": 1}, {"a": 2})
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"


# --- formats


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("d.jsonl", LINES),
        ("d.ndjson", LINES),
        ("D.JSONL", LINES),
        ("d", LINES),
        ("d.txt", "\ufeff\n" + LINES),
        ("d.json", '[{"a":1},{"a":2}]'),
        ("d", '[{"a":1},\n{"a":2}]'),
    ],
)
def test_the_format_is_detected_by_the_name_or_the_first_line(path: str, text: str) -> None:
    assert rows(text, path) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a\tb\n1\t2\n"])
def test_the_format_of_a_table_is_detected_by_its_header(text: str) -> None:
    assert rows(text, "d.txt") == [{"a": "1", "b": "2"}]


def test_a_document_on_one_line_is_reported_by_the_path_of_its_rows() -> None:
    assert rows('{"data":[{"a":1}]}', "d", rows="data") == [{"a": 1}]


def test_a_format_that_is_given_counts_more_than_the_name() -> None:
    assert rows(LINES, "d.csv", format="jsonl") == [{"a": 1}, {"a": 2}]


def test_a_file_that_looks_like_nothing_is_a_problem() -> None:
    expected = "the format of this file is not clear from its name or its first line"
    assert place_and_message("one word\n", "d.txt") == (2, expected)


@pytest.mark.parametrize(
    ("path", "option", "message"),
    [
        ("d.jsonl", {"delimiter": ";"}, "'delimiter' is only for csv and tsv"),
        ("d.csv", {"rows": "a"}, "'rows' is only for json"),
    ],
)
def test_an_option_of_another_format_is_a_problem(
    path: str, option: dict[str, str], message: str
) -> None:
    assert place_and_message(LINES, path, **option) == (2, message)


# --- bytes


@pytest.mark.parametrize("path", ["d.jsonl.gz", "d.jsonl"])
def test_packed_files_are_unpacked(path: str) -> None:
    assert rows(gzip.compress(LINES.encode()), path) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", "Größe".encode("latin-1")),
        ("utf-16", "Größe".encode("utf-16")),
        ("utf-16-le", "\ufeffGröße".encode("utf-16-le")),
        ("utf-8-sig", "\ufeffGröße".encode()),
    ],
)
def test_other_encodings_are_read(encoding: str, text: bytes) -> None:
    rest = "\nĊ\n" if encoding.startswith("utf-16") else "\nx\n"  # Ċ has a byte like a line end
    data = text + rest.encode(encoding.removesuffix("-sig")).removeprefix(b"\xff\xfe")
    assert rows(data, "d.csv", encoding=encoding) == [{"größe": rest.strip()}]


@pytest.mark.parametrize("path", ["d.jsonl", "d.jsonl.gz", "d.csv", "d.json"])
def test_a_pointer_to_data_elsewhere_is_reported(path: str) -> None:
    error = problem(POINTER, path)
    assert (error.message, error.hint) == (
        "this is a Git LFS pointer: the data themselves are not here",
        "run 'git lfs pull'",
    )


def test_what_is_not_utf8_is_reported_with_its_offset() -> None:
    data = b'{"a":1}\n{"a":"\xff"}\n'
    assert place_and_message(data) == (2, "not UTF-8: byte 0xff at offset 14")


def test_what_is_in_another_encoding_has_a_hint_on_the_field() -> None:
    hint = problem("a,b\n1,2\n".encode("utf-16"), "d.csv").hint
    assert hint == "set its 'encoding', as in 'encoding: latin-1' or 'encoding: utf-16'"


def test_a_packed_file_that_is_cut_off_is_reported() -> None:
    data = gzip.compress(b"".join(b'{"a":%d}\n' % (n * 7919**3) for n in range(5000)))
    assert problem(data[:-20000]).message.startswith("the gzip data are cut off")


def test_a_packed_file_that_is_damaged_is_reported() -> None:
    data = bytearray(gzip.compress(LINES.encode()))
    data[-6] ^= 1
    assert "the gzip data are damaged" in problem(bytes(data)).message


def test_a_file_that_is_not_packed_as_its_name_says_is_reported() -> None:
    assert place_and_message(LINES, "d.jsonl.gz") == (
        None,
        "this is not gzip data, though the name ends in '.gz'",
    )


@pytest.mark.parametrize("path", ["d.jsonl", "d.json", "d.csv", "d.txt", "d.jsonl.gz"])
@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_a_file_without_rows_is_never_passed_over(path: str, content: str) -> None:
    data = gzip.compress(content.encode()) if path.endswith(".gz") else content
    assert place_and_message(data, path) == (
        None,
        "the file has no rows: the test would have no cases",
    )


def test_an_empty_list_is_never_passed_over() -> None:
    assert place_and_message("[]", "d.json") == (
        None,
        "the file has no rows: the test would have no cases",
    )


def test_a_file_that_cannot_be_opened_is_a_problem() -> None:
    def missing() -> BinaryIO:
        raise FileNotFoundError(2, "No such file or directory")

    with pytest.raises(FileProblem, match="cannot be read: No such file or directory"):
        read_dataset(spec("d.jsonl"), missing)


# --- problems


def test_a_problem_is_one_of_the_data_file() -> None:
    actual = problem('{"a":1}\n{').at("tests/t.md")
    assert (actual.file, actual.line, actual.column) == ("d.jsonl", 2, 2)


def test_the_data_file_is_called_as_the_caller_says() -> None:
    actual = read_dataset(spec("../d.jsonl"), lambda: io.BytesIO(b"{"), "data/d.jsonl")
    with pytest.raises(FileProblem) as caught:
        list(actual)
    assert caught.value.at("tests/t.md").file == "data/d.jsonl"


def test_all_bad_rows_are_reported_at_once() -> None:
    actual = problem('{"a":1}\n{\n[1]\n{"a":2}\n3\n').all_at("t.md")
    assert [item.line for item in actual] == [2, 3, 5]


def test_no_more_problems_are_reported_than_anyone_can_read() -> None:
    assert len(problem("[1]\n" * 1000).all_at("t.md")) == MOST_PROBLEMS


def test_bad_rows_are_skipped_with_a_warning_each() -> None:
    table = dataset('{"a":1}\n{"b":\n\n[1]\n{"a":2}\n', onError="skip")
    assert [(row.number, row.item["a"]) for row in table] == [(1, 1), (4, 2)]
    assert [(item.line, item.severity, item.message) for item in table.problems] == [
        (2, "warning", "this row is skipped: not JSON: expecting value"),
        (4, "warning", "this row is skipped: a row must be an object, not a list"),
    ]


def test_a_skipped_row_has_no_columns() -> None:
    assert dataset('{"b":NaN}\n{"a":1}\n', onError="skip").columns == ("a",)


def test_a_line_in_another_encoding_can_be_skipped() -> None:
    assert rows(b'{"a":1}\n{"a":"\xff"}\n{"a":2}\n', onError="skip") == [{"a": 1}, {"a": 2}]


def test_the_warnings_that_are_left_out_are_counted() -> None:
    table = dataset('{"a":1}\n' + "3\n" * (MOST_PROBLEMS + 5), onError="skip")
    list(table)
    assert table.problems[-1].message == "5 more rows are skipped"


def test_a_file_of_nothing_but_bad_rows_is_a_problem() -> None:
    assert place_and_message("1\n2\n", onError="skip") == (
        None,
        "no row can be read: the test would have no cases",
    )


# --- reading again and again


def test_a_dataset_can_be_read_twice() -> None:
    table = dataset('{"a":1}\n3\n', onError="skip")
    assert (len(list(table)), len(list(table)), len(table.problems)) == (1, 1, 1)


def test_a_file_that_changes_meanwhile_is_a_problem() -> None:
    contents = iter([b'{"a":1}', b'{"b":1}'])
    actual = read_dataset(spec("d.jsonl"), lambda: io.BytesIO(next(contents)))
    with pytest.raises(FileProblem, match="the file was changed while it was read"):
        list(actual)


@pytest.mark.parametrize(
    ("path", "head", "line"),
    [("d.jsonl", b"", b'{"a":"%s"}\n' % (b"x" * 50)), ("d.csv", b"a\n", b"%s\n" % (b"x" * 50))],
)
def test_a_long_file_takes_no_more_memory_than_a_short_one(
    path: str, head: bytes, line: bytes
) -> None:
    def peak(count: int) -> int:
        data = head + line * count
        actual = read_dataset(spec(path), lambda: io.BytesIO(data))
        tracemalloc.start()
        try:
            assert sum(1 for _ in actual) == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    assert peak(20_000) < peak(1000) + 100_000
