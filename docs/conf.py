import re
import sys
from pathlib import Path

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

from lengthwise import __version__

project = "lengthwise"
author = "The lengthwise developers"
copyright = author
release = version = __version__

# What Sphinx alone loads is in extensions/; what the tests run without Sphinx is beside this file.
sys.path[:0] = [str(Path(__file__).parent / "extensions"), str(Path(__file__).parent)]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "commands",
    "offline",
]
exclude_patterns = ["_build", "**/sg_execution_times.rst", "sg_execution_times.rst"]
html_theme = "furo"
html_title = f"lengthwise {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
# MathML, so that the site needs no network and no script for its formulas.
html_math_renderer = "mathml"
myst_update_mathjax = False
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
smartquotes = False

_shown: set[int] = set()


def figures(block, block_vars, gallery_conf):
    """Show every figure that an example has made and not shown yet."""
    paths = []
    for value in block_vars["example_globals"].values():
        if isinstance(value, Figure) and id(value) not in _shown:
            _shown.add(id(value))
            paths.append(next(block_vars["image_path_iterator"]))
            value.savefig(paths[-1])
    return figure_rst(paths, gallery_conf["src_dir"])


sphinx_gallery_conf = {
    "image_scrapers": (figures,),
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "show_memory": False,
    # A page of times would fetch scripts from elsewhere.
    "write_computation_times": False,
}
suppress_warnings = ["config.cache"]


def mathematics(app, what, name, obj, options, lines):
    """Docstrings write |x| and f*(x), which are no markup, and code next to brackets."""
    parts = re.split(r"(``[^`]+``)", "\n".join(lines))
    for place, part in enumerate(parts):
        if part.startswith("``"):
            before, after = parts[place - 1][-1:], parts[place + 1][:1]
            parts[place] = ("\\ " * before.isalnum()) + part + ("\\ " * (after.isalnum() or after == "["))
        else:
            parts[place] = re.sub(r"(?<=\w)\*", r"\*", part.replace("|", r"\|"))
    lines[:] = "".join(parts).split("\n")


def setup(app):
    """Sphinx's hook."""
    app.connect("autodoc-process-docstring", mathematics)
