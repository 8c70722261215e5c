"""What the store holds, as rows that SQL can ask: the cases, results, answers and costs of runs.

The contents are the truth, and these rows repeat them. They are written in the transaction that
stores a content, and follow from it alone, so they are the same in whatever order contents arrive.
"""
