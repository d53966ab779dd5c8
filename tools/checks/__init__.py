"""Checks of the book. Each is a plain function that returns a list of faults, empty if all is well."""
