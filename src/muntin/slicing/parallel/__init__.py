"""One step on several cores: batches are sliced in pieces of time, and windows completed by time or by key."""
