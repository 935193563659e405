"""Driver that connects the application to its web server: through pipes, instead of a terminal."""

from __future__ import annotations

import os

from textual import messages
from textual.drivers.web_driver import WebDriver

DRIVER = f"{__name__}:PageDriver"


class PageDriver(WebDriver):
    """Ends the application when the other end of its pipes is gone, as after a server was killed."""

    def run_input_thread(self) -> None:
        """Hand on what comes in, to its end."""
        super().run_input_thread()
        self._app.post_message(messages.ExitApp())


def is_served() -> bool:
    """Return whether this process serves a page."""
    return os.environ.get("TEXTUAL_DRIVER") == DRIVER
