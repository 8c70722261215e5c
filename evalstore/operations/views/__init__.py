"""What commands and the browser show of cases, answers and histories."""
