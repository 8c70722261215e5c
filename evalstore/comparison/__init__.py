"""Pure comparison: pairs, statistics, and the differences of words and versions."""
