"""Untrusted text in Markdown that is rendered elsewhere: it loads nothing and contains no markup."""

import re

from busso.base.terminal import one_line, visible

# Code in single backticks within one line is kept. All other backticks are escaped, because renderers pair them across
# lines. Escaping one bracket disables a link, an image, a link definition or a tag.
_MARKUP = re.compile(r"(\\.|(?<!`)`[^`\n]+`(?!`))|`+|\][(\[:]|<(?=[A-Za-z/!?])")


def literal(text: str) -> str:
    """Return prose without links, images and tags; code in backticks and emphasis stay."""
    return _MARKUP.sub(lambda found: found[1] or _escaped(found[0]), visible(text))


def _escaped(markup: str) -> str:
    if markup[0] == "`":
        return "\\`" * len(markup)
    return f"{markup[:-1]}\\{markup[-1]}"


def code(text: object) -> str:
    """Return any text as one line in backticks."""
    return f"`{one_line(str(text)).replace('`', chr(39))}`"
