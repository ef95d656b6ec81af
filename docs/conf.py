"""Sphinx configuration."""

from importlib.metadata import version as installed_version

project = "robustphase"
copyright = "2026, the robustphase developers"
version = release = installed_version("robustphase")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_generated", "_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "robustphase"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
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
suppress_warnings = ["myst.xref_missing", "ref.ref"]
