"""Small checks of files for pre-commit: ``python -m tools.hooks large|yaml FILE ...``."""

import sys
from pathlib import Path

import yaml

MAX_BYTES = 1_500_000


def large_file_faults(paths: list[Path]) -> list[str]:
    """Files that are too heavy for the repository."""
    sizes = [(path, path.stat().st_size) for path in paths]
    return [f"{path}: {size:,} bytes, allowed are {MAX_BYTES:,}" for path, size in sizes if size > MAX_BYTES]


def yaml_faults(paths: list[Path]) -> list[str]:
    """Files that are no valid YAML."""
    faults = []
    for path in paths:
        try:
            yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            faults.append(f"{path}: {error}")
    return faults


CHECKS = {"large": large_file_faults, "yaml": yaml_faults}


def main(arguments: list[str]) -> int:
    """Run one check on the files that are named."""
    name, *files = arguments
    faults = CHECKS[name]([Path(file) for file in files])
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
