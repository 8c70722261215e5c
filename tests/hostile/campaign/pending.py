"""Cases that the short form leaves out, because what they attack is not repaired yet.

The long form leaves nothing out. The name `random` stands for all trials that are drawn.
"""

from __future__ import annotations

# fmt: off
PENDING: dict[str, frozenset[str]] = {
    "files": frozenset(
        (
            "absolute-store", "doubling-replacements", "evalsone-endless", "evalsone-fifo",
            "fifo-dotenv", "git-config-in-dotenv", "git-config-in-folder", "huge-cost",
            "huge-hexadecimal", "huge-number-check", "huge-repetitions", "huge-spread",
            "huge-weight", "key-in-url", "langbite-endless", "large-dataset",
            "large-dotenv", "large-pattern", "large-settings", "latin-1-dotenv",
            "linked-dotenv", "linked-prompt", "linked-schema", "linked-store-folder",
            "linked-test", "linked-tests-folder", "lone-surrogate", "long-dotenv",
            "long-python-check", "lve-fifo", "nemo-file-outside", "nemo-nested",
            "nemo-relative-outside", "nested-index", "nested-not", "nested-when",
            "nul-in-dotenv", "other-dotenv", "other-key", "password-in-url",
            "production-dotenv", "promptfoo-endless", "promptfoo-file-outside",
            "promptfoo-linked", "promptfoo-many", "promptfoo-relative-outside",
            "promptfoo-template-loop", "random", "recursive-pattern", "schema-any-of",
            "schema-pattern", "schema-pattern-properties", "schema-unique-items",
            "slow-when", "store-outside", "template-batch", "template-doubling",
            "template-endless-number", "template-format-filter", "template-format-method",
            "template-loop", "template-macro", "template-many-raw", "template-precision",
            "template-slice", "template-tojson", "template-width", "template-wordwrap",
            "utf-16-dotenv",
        )
    ),
    "servers": frozenset(
        (
            "bad-encoding", "content-number", "content-object", "control",
            "finish-reason-error", "latin-1", "long-header", "nested", "random", "redirect",
            "retry-after-far-offset", "retry-after-far-year", "retry-after-huge",
            "surrogate", "usage-huge", "usage-negative", "usage-texts",
        )
    ),
    "judges": frozenset(
        (
            "concatenated", "content-filter", "denied", "error", "fenced", "length",
            "listed", "quoted-after", "quoted-in-prose", "random", "score-zero",
            "truncated", "unterminated",
        )
    ),
    "kills": frozenset(
        (
            "import", "import-interrupted", "init-interrupted", "judge-interrupted",
            "label-interrupted", "migrate", "migrate-interrupted", "run-interrupted",
        )
    ),
    "stores": frozenset(
        (
            "aborting-trigger", "evaluations-content-null", "evaluations-score-blob",
            "nodes-content-nan", "random", "runs-content-digits", "runs-content-list",
            "runs-content-null", "sessions-content-object", "sessions-started-blob",
            "trigger", "view",
        )
    ),
    "calls": frozenset(
        (
            "closed-all", "closed-stderr", "closed-stdout", "deleted-folder", "full-json",
            "full-status", "full-stderr", "full-stdout", "huge-number", "long-diff",
            "long-log", "long-store", "processor-time", "random", "raw-byte-label",
            "raw-byte-log",
        )
    ),
    "fuzz": frozenset(
        (
            "headers",
        )
    ),
}
# fmt: on
"""By attack: the names of the cases."""
