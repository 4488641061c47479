"""Steps on several cores: batches are sliced by time, windows completed by time or by key."""
