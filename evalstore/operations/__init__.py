"""One function for each command: what the CLI prints and the browser shows.

Operations return frozen values that know their JSON; nothing here prints.
"""
