"""From a query to the plan that serves it: what to keep, how to slice, and why."""
