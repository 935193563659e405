"""Contrast of two colours by WCAG 2: 4.5 is the least for text (AA)."""

from collections.abc import Sequence

LEAST = 4.5


def contrast(one: Sequence[int], other: Sequence[int]) -> float:
    """Return the ratio of the luminances of two colours, each red, green and blue from 0 to 255; 1 to 21."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def of_hex(text: str) -> tuple[int, ...]:
    """Return a colour written as #rgb or #rrggbb."""
    digits = text.lstrip("#")
    return tuple(bytes.fromhex(digits if len(digits) == 6 else "".join(2 * digit for digit in digits)))


def _luminance(colour: Sequence[int]) -> float:
    shares = (value / 255 for value in colour)
    linear = [share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
