"""Why an answer or a judgement is missing."""
