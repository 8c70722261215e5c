"""The views of cases, answers, runs and histories that commands and the browser show."""
