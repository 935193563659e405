"""Update: loss, optimizer, schedules and metrics."""
