"""Importers of other tools' files, one module or package per format."""
