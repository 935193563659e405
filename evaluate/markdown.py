"""Text that may come out of a file, in Markdown that others show: it loads nothing, and is no markup but a name's."""

from __future__ import annotations

import re

from command.visible import one_line, visible

# What stands in backticks stays. A link, an image, a definition of one or a tag is none without its bracket.
_MARKUP = re.compile(r"(\\.|`[^`\n]*`)|\][(\[:]|<(?=[A-Za-z/!?])")


def literal(text: str) -> str:
    """Prose without links, images and tags; names in backticks stay, and so do `*`, `_` and the like."""
    return _MARKUP.sub(lambda found: found[1] or f"{found[0][:-1]}\\{found[0][-1]}", visible(text))


def code(text: object) -> str:
    """Text from elsewhere in backticks, in one line, whatever stands in it."""
    return f"`{one_line(str(text)).replace('`', chr(39))}`"
