"""The operations: one function for each command, used by the CLI, the browser and the library.

Operations return values, which `json_output.to_json` turns into JSON. They print nothing.
"""
