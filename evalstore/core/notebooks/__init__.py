"""How runs, reports, comparisons and answers look in a notebook."""
