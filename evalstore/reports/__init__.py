"""What has been found, put so that a person can read it: rates, intervals, differences. Pure."""
