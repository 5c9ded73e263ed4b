"""Settings of the documentation site; `scripts/build_docs.sh` builds it."""

project = "wsol"
html_title = "wsol"
html_theme = "furo"
extensions = ["myst_parser"]
myst_heading_anchors = (
    4  # headings get the anchors that GitHub gives them, so that the same links work in both
)
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
