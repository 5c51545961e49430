"""Sphinx's settings. The folder that Sphinx reads is put together by docs/build."""

from __future__ import annotations

from sphinx.application import Sphinx

project = "skillpress"
author = "the authors of skillpress"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "docs.build.formulas"]
html_theme = "furo"
html_title = "skillpress"
html_copy_source = True  # llms.txt leads to the pages as they are written
html_use_index = False
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_theme_options = {"top_of_page_buttons": []}

myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"
myst_heading_anchors = 4  # as GitHub makes them
myst_links_external_new_tab = False

# MyST checks anchors of other pages; names of Python in signatures are links where the API has them.
nitpick_ignore_regex = [("py:.*", ".*")]
autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch", "transformers"]  # seconds of importing, for one class that holds models
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
suppress_warnings = ["ref.python"]  # a name in a docstring that several classes have


def setup(app: Sphinx) -> None:
    """Docstrings are read in the way that they are written: before napoleon looks at their sections."""
    app.connect("autodoc-process-docstring", as_written, priority=400)


def as_written(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """``|s|`` is a length and no substitution, and an indented paragraph is a formula or a drawing."""
    found: list[str] = []
    for line in lines:
        starts = line.startswith("    ") and found and not found[-1] and not _indented(found)
        found += (
            ["::", "", line] if starts else [line if _indented([*found, line]) else line.replace("|", r"\|")]
        )
    lines[:] = found


def _indented(lines: list[str]) -> bool:
    """Whether the last line with words is indented."""
    return next((line for line in reversed(lines) if line.strip()), "").startswith("    ")
