"""The files of a remote that contain records."""
