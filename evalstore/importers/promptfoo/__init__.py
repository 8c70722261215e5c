"""promptfoo: configurations with prompts, tests and assertions.

The facts are those of its documentation. What differs, and what is left, is said in
`docs/coming-from/promptfoo.md`.
"""

from evalstore.importers.promptfoo.reader import read

__all__ = ["read"]
