"""Sphinx configuration for `make docs`; Markdown pages are read in place, so that links also work on GitHub."""

from busso.version import __version__

project = "busso"
copyright = "the busso authors"  # noqa: A001 - the name that Sphinx reads
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]

# The source folder is the root of the repository.
root_doc = "docs/index"
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**"]
include_patterns += ["*/champion/README.md", "*/champion/*/README.md"]  # Sphinx's ** needs a folder between
exclude_patterns = ["docs/site"]

myst_heading_anchors = 4  # GitHub's anchors
myst_linkify_fuzzy_links = False
nitpicky = True
# Types of other projects, and settings classes, which the settings page documents.
nitpick_ignore_regex = [("py:.*", r"(?!busso\.(?!command\.)).*"), ("py:class", r"busso\.train\.settings\..*")]
suppress_warnings = ["epub.unknown_project_files"]

# Docstrings are plain text with code in single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "pydata_sphinx_theme"
html_title = f"busso {release}"
html_extra_path = ["site"]
html_static_path = ["static"]
html_css_files = ["site.css"]
highlight_language = "bash"  # of a block without one
copybutton_selector = "div.highlight-bash pre, div.highlight-python pre"
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
    "show_toc_level": 2,
}
