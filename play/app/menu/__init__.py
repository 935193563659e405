"""The menu and its forms."""
