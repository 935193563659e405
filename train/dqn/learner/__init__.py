"""The update: loss, optimizer, schedules, and what is measured of it."""
