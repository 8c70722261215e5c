"""Where the files of a remote are: a folder, a bucket or an SFTP server."""
