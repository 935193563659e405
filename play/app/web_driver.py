"""Driver that connects the application to its web server through pipes instead of a terminal."""

import os

from textual import messages
from textual.drivers.web_driver import WebDriver

DRIVER = f"{__name__}:PageDriver"


class PageDriver(WebDriver):
    """Driver that ends the application when its pipes are closed, such as after the server was killed."""

    def run_input_thread(self) -> None:
        """Forward input until its end, then exit."""
        super().run_input_thread()
        self._app.post_message(messages.ExitApp())


def is_served() -> bool:
    """Return whether this process serves a page."""
    return os.environ.get("TEXTUAL_DRIVER") == DRIVER
