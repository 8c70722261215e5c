"""promptfoo: configurations with prompts, tests and assertions.

The facts are those of its documentation. What differs, and what is left, is said in
`docs/coming-from/promptfoo.md`.
"""

from evalstore.formats.promptfoo.reading import read

__all__ = ["read"]
