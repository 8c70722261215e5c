"""Version-controlled evaluation of language models: run only what changed, and see why.

Tests are Markdown files. What a model is shown and what a judge is told become
versions, named by their content, in one store: a run asks only what has no answer
yet and judges only what has no verdict yet. Read `values` first.
"""

__version__ = "0.1.0"
