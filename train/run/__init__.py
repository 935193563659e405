"""What every run has, whatever learns in it."""
