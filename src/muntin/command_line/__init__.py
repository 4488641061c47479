"""The parts of the command line: inputs, outputs, progress, snapshots, diagnosis."""
