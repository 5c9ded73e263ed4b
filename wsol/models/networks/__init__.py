"""Classifiers that are trained, one file each. Every module of this folder is imported, so a new file is all
it takes."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
