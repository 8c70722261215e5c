"""Sharing results without a server: rows of a store as immutable files in a folder.

A remote is a folder of packs, which hold rows, and of index files, which list the rows of a push.
All are named by their SHA-256 and never change. An index is written last: it is the commit. So
any number of programs may push at once, without locks, and an interrupted push leaves nothing
that a reader sees. The union of all rows is always defined, because a row is named by its content.
"""
