"""Importers of ai-tester projects and databases."""
