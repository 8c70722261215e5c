"""A check, an importer and a provider for evalstore."""
