"""The parts of `import`: what it writes, and the recorded answers it keeps."""
