"""How people and programs reach evalstore."""
