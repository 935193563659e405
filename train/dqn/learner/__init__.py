"""The update: loss, optimizer, schedules and metrics."""
