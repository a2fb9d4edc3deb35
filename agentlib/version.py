"""The version of this project, for the package, its metadata and the command line."""

__version__ = "0.1.0"
