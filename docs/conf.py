"""Sphinx configuration."""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for the modules of this folder

project = "robustphase"
copyright = "2026, the robustphase developers"
version = release = installed_version("robustphase")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
# Links into the reference of other projects need their inventories from the network, and without them a build would warn.
if os.environ.get("ROBUSTPHASE_DOCS_ONLINE") == "1":
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }
    intersphinx_timeout = 30
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_generated", "_templates", "examples/*.ipynb", "examples/*.py", "examples/*.zip"]
html_theme = "pydata_sphinx_theme"
html_title = "robustphase"
html_show_sourcelink = html_copy_source = False
html_static_path = ["_style"]
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "header_links_before_dropdown": 3}
html_sidebars = {"**": ["all-pages.html"], "index": []}
autosummary_generate = True
# What a module lists in __all__ is what it documents, also where the code lives in a module below.
autosummary_ignore_module_all = False
templates_path = ["_templates"]
# A class that two modules offer is one entry of the index: that of the first.
autosummary_context = {
    "documented_elsewhere": [
        "robustphase.files.DataError",
        "robustphase.population.curvature.CurvatureRange",
        "robustphase.population.moments.CovarianceBounds",
    ]
}
numpydoc_show_class_members = False
# The score method inherited from scikit-learn refers to a label of its own user guide.
suppress_warnings = ["ref.ref"]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "within_subsection_order": "FileNameSortKey",
    # An example that fails, or that warns, fails the build.
    "abort_on_example_error": True,
    "reset_modules": ("example_runs.quiet_plots", "example_runs.strict_warnings"),
    "reset_modules_order": "both",
    "capture_repr": (),
    "image_srcset": ["2x"],
    "thumbnail_size": (400, 280),
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1000,
    "write_computation_times": False,
    "remove_config_comments": True,
}
