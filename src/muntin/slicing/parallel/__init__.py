"""Steps on several cores: batches are sliced by time, and windows are completed by time or by key."""
