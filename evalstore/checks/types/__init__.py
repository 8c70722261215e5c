"""The check types, one module for each subject."""
