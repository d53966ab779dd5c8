"""The files around the code agree with each other."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import ROOT
from tools.hooks import MAX_BYTES, large_file_faults, yaml_faults
from tools.hooks import main as hooks_command

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
LOCKED_EXTRAS = ("book", "data", "pdf", "test")
GENERATED = {"_build", "build", ".venv", ".git", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis"}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def own_files():
    """All files of the project but what is built or installed."""
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in GENERATED and not f.endswith(".egg-info")]
        found += [Path(folder) / name for name in files if not name.endswith((".nbi", ".nbc", ".pyc"))]
    return found


def texts():
    for path in own_files():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def pins(name):
    return [Requirement(line) for line in read(name).splitlines() if line and not line.startswith("#")]


def declared():
    groups = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in LOCKED_EXTRAS)]
    return [Requirement(text) for group in groups for text in group]


# --- requirements ---


def test_lock_holds_names_and_exact_versions_only():
    for line in read("requirements.lock").splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+( ; .+)?", line), line
        assert "locbook" not in line


def test_lock_satisfies_what_is_declared():
    locked = {}
    for pin in pins("requirements.lock"):
        locked.setdefault(canonicalize_name(pin.name), []).append(next(iter(pin.specifier)).version)
    for requirement in declared():
        versions = locked.get(canonicalize_name(requirement.name), [])
        assert versions, f"{requirement.name} is declared and not locked; run `make lock`"
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def test_lock_input_names_the_extras_that_are_locked():
    assert f".[{','.join(LOCKED_EXTRAS)}]" in read("requirements.in")


def test_environment_for_conda_takes_the_same_pins():
    environment = yaml.safe_load(read("environment.yml"))
    (by_pip,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert by_pip == ["-r requirements.lock", "-e ."]
    (python,) = (e.partition("=")[2] for e in environment["dependencies"] if str(e).startswith("python="))
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains(python)
    assert PROJECT["requires-python"] == ">=3.11"


def test_peers_are_pinned_and_outside_the_lock():
    locked = {canonicalize_name(pin.name) for pin in pins("requirements.lock")}
    for pin in pins("requirements-peers.txt"):
        assert str(pin.specifier).startswith("==")
        assert canonicalize_name(pin.name) not in locked


def test_installed_versions_are_the_locked_ones():
    from importlib.metadata import version

    here = [pin for pin in pins("requirements.lock") if pin.marker is None or pin.marker.evaluate()]
    wrong = [
        f"{pin}, installed {version(pin.name)}"
        for pin in here
        if not pin.specifier.contains(version(pin.name))
    ]
    assert wrong == []


def test_environment_file_makes_a_difference():
    # The check above is worth nothing if a wrong version passes it.
    (numpy,) = (pin for pin in declared() if pin.name == "numpy")
    assert not numpy.specifier.contains("2.5.0")


# --- names and numbers that stand in several places ---


def test_version_is_one():
    import locbook

    version = PROJECT["version"]
    assert yaml.safe_load(read("CITATION.cff"))["version"] == version
    assert f"## [{version}]" in read("CHANGELOG.md")
    assert locbook.__version__ == version


def test_repository_address_is_one():
    address = PROJECT["urls"]["Repository"]
    owner_and_name = address.removeprefix("https://github.com/")
    wrong = []
    for path, text in texts():
        wrong += [
            f"{path.name}: {a}"
            for a in re.findall(r"github\.com/([\w.-]+/locbook)\b", text)
            if a != owner_and_name
        ]
    assert wrong == []
    assert yaml.safe_load(read("_config.yml"))["repository"]["url"] == address


def test_help_lists_each_target():
    listed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    targets = {line.split()[1] for line in listed.stdout.splitlines()}
    assert {
        "book",
        "pdf",
        "linkcheck",
        "test",
        "peers",
        "notebooks",
        "bench",
        "lint",
        "serve",
        "clean",
    } <= targets


def test_documents_name_what_exists():
    from tools.checks.template import SECTIONS

    contributing = read("CONTRIBUTING.md")
    assert [section for section in SECTIONS if f"`## {section}`" not in contributing] == []
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md", "book/index.md"):
        assert set(re.findall(r"\bmake ([a-z]+)\b(?=`|\s+#|\n| [A-Z])", read(name))) <= targets, name


def test_reading_guide_of_the_engine_names_each_file():
    from locbook import engine

    guide = re.findall(r"^``(\w+)`` {2,}", engine.__doc__, re.MULTILINE)
    files = [path.stem for path in (ROOT / "locbook" / "engine").glob("*.py") if path.stem != "__init__"]
    assert sorted(guide) == sorted(files)


def test_ci_runs_the_commands_of_the_readme():
    script = read(".ci/run")
    assert [line.split()[1] for line in script.splitlines() if line.startswith("make ")] == [
        "peers",
        "test",
        "book",
    ]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=True)


# --- what no file may hold ---

# Written in halves: this file must not name them either.
HOSTS = [
    a + b
    for a, b in (
        ("pypi", ".org"),
        ("python", "hosted"),
        ("registry.", "npmjs"),
        ("deb.", "debian.org"),
        ("anaconda", ".org"),
    )
]


def host_faults(named_texts):
    return [f"{name}: {host}" for name, text in named_texts for host in HOSTS if host in text]


def test_no_file_names_the_host_of_a_registry():
    assert host_faults((path.relative_to(ROOT), text) for path, text in texts()) == []
    assert host_faults([("broken", f"see https://{HOSTS[0]}/simple")]) == [f"broken: {HOSTS[0]}"]


def test_no_file_is_too_large(tmp_path):
    assert large_file_faults(own_files()) == []
    heavy = tmp_path / "heavy.bin"
    heavy.write_bytes(b"0" * (MAX_BYTES + 1))
    assert hooks_command(["large", str(heavy)]) == 1


def test_yaml_is_valid(tmp_path):
    assert yaml_faults([p for p in own_files() if p.suffix in (".yml", ".yaml", ".cff")]) == []
    broken = tmp_path / "broken.yml"
    broken.write_text("a: [1")
    assert hooks_command(["yaml", str(broken)]) == 1


def test_picture_of_the_readme_is_what_the_tool_draws(tmp_path):
    import matplotlib

    from tools.picture import PICTURE, draw

    with matplotlib.rc_context():
        assert draw(tmp_path / "idea.svg").read_bytes() == PICTURE.read_bytes()
    assert str(PICTURE.relative_to(ROOT)) in read("README.md")


# --- style and spelling ---


def tool(*arguments):
    run = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize(
    "arguments",
    [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("codespell_lib",)],
    ids=["lint", "format", "spelling"],
)
def test_style(arguments):
    status, output = tool(*arguments)
    assert status == 0, output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("ruff", "check", "--isolated"), "import os\n"),
        (("ruff", "format", "--check", "--isolated"), "x=1\n"),
        (("codespell_lib",), f"# {'etarepes'[::-1]} means\n"),
    ],
    ids=["lint", "format", "spelling"],
)
def test_style_fails_on_a_broken_file(tmp_path, arguments, text):
    broken = tmp_path / "broken.py"
    broken.write_text(text)
    assert tool(*arguments, str(broken))[0] != 0


def test_hooks_are_local():
    configuration = yaml.safe_load(read(".pre-commit-config.yaml"))
    assert [repo["repo"] for repo in configuration["repos"]] == ["local"]
    assert {hook["language"] for hook in configuration["repos"][0]["hooks"]} == {"system"}
