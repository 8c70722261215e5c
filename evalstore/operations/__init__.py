"""One function for each command: what the CLI prints and the browser shows.

Operations return values, which `json_output.to_json` turns into JSON; nothing here prints.
"""
