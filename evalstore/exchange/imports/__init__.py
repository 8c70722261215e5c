"""The parts of `import`: written files and recorded answers."""
