"""`python -m benches.found_texts ROOT WORD`: searches a workspace with the library.

It is a process of its own, so that its memory is that of the search alone.
"""

from __future__ import annotations

import sys

from evalstore import Workspace


def main(root: str, word: str) -> None:
    """Print how many texts have a word."""
    print(len(Workspace(root).search(word)))


if __name__ == "__main__":
    main(*sys.argv[1:])
