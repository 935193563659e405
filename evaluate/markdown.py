"""Text from files in Markdown that others show: it loads nothing and cannot contain markup."""

from __future__ import annotations

import re

from busso.command.terminal.visible import one_line, visible

# What stands in single backticks of one line stays. Other backticks are none: which of them are a pair, readers of
# Markdown decide over several lines. A link, an image, a definition of one or a tag is none without its bracket.
_MARKUP = re.compile(r"(\\.|(?<!`)`[^`\n]+`(?!`))|`+|\][(\[:]|<(?=[A-Za-z/!?])")


def literal(text: str) -> str:
    """Prose without links, images and tags; names in backticks stay, and so do `*`, `_` and the like."""
    return _MARKUP.sub(lambda found: found[1] or _escaped(found[0]), visible(text))


def _escaped(markup: str) -> str:
    if markup[0] == "`":
        return "\\`" * len(markup)
    return f"{markup[:-1]}\\{markup[-1]}"


def code(text: object) -> str:
    """Text from elsewhere in backticks, in one line, whatever stands in it."""
    return f"`{one_line(str(text)).replace('`', chr(39))}`"
