"""The words that everything uses: values, results, hashing, errors, display and the clock."""
