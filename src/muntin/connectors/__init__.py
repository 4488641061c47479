"""What drives the core: the embedded engine, and where its tuples come from."""
