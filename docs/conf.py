from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

from lengthwise import __version__

project = "lengthwise"
author = "The lengthwise developers"
copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "deflist"]

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
}
suppress_warnings = ["config.cache"]
