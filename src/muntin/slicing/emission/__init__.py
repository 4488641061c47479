"""Which windows are emitted when, and their values: first results, early ones, revisions, empty windows."""
