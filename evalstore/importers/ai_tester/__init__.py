"""Projects and databases of ai-tester."""
