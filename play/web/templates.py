"""Jinja templates of the page. Texts are escaped, and control characters in them are made visible."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from busso.base.terminal import visible

FILES = Path(__file__).with_name("page")


def _shown(value: Any) -> Any:
    return visible(value) if type(value) is str else value  # not Markup, a subclass


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(FILES), autoescape=True, finalize=_shown, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def template(name: str) -> Template:
    """Return a template of the folder page/."""
    return _environment().get_template(name)
