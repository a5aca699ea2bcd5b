"""What the packages say about the project. Cargo.toml defines the version, the address and the description."""

import hashlib
import json
import os
import posixpath
import re
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = json.loads((ROOT / "packaging/targets.json").read_text())


def cargo_metadata(*options):
    command = ["cargo", "metadata", "--format-version=1", "--locked", *options]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


PACKAGE = next(package for package in cargo_metadata("--no-deps")["packages"] if package["name"] == "mcp-sidecar")
VERSION = PACKAGE["version"]
REPOSITORY = PACKAGE["repository"]
DESCRIPTION = PACKAGE["description"]
LICENSE = PACKAGE["license"]
LICENSE_FILES = ["LICENSE-MIT", "LICENSE-APACHE"]
DOWNLOADS = f"{REPOSITORY}/releases/download/v{VERSION}"
# The name in the MCP registry. The npm and PyPI packages repeat it, which proves that one owner published them.
REGISTRY_NAME = "io.github." + "/".join(REPOSITORY.split("/")[-2:])


def target_named(name):
    found = next((target for target in TARGETS if target["target"] == name), None)
    if found is None:
        raise SystemExit(f"{name} is not in packaging/targets.json")
    return found


def program_name(target):
    return "mcp-sidecar.exe" if "windows" in target["target"] else "mcp-sidecar"


def archive_name(target):
    return f"mcp-sidecar-{VERSION}-{target['target']}.tar.gz"


def archives(folder):
    """The targets whose archive is in the folder, each with the path of the archive."""
    found = [(target, Path(folder) / archive_name(target)) for target in TARGETS]
    found = [(target, path) for target, path in found if path.exists()]
    if not found:
        raise SystemExit(f"{folder} contains no archive of version {VERSION}; run `make dist` first")
    return found


def read_from_archive(path, name):
    """A file of the archive, named without the top folder."""
    with tarfile.open(path) as archive:
        top = path.name.removesuffix(".tar.gz")
        return archive.extractfile(f"{top}/{name}").read()


def timestamp():
    """The time that packages carry, so that the same commit gives the same bytes."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    git = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(git, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def absolute_links(file):
    """A Markdown file with absolute links, which point to this version: package indexes cannot resolve relative ones."""
    folder = posixpath.dirname(file)

    def absolute(match):
        picture, text, target = match.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        kind, path = "raw" if picture else "blob", posixpath.normpath(posixpath.join(folder, target))
        return f"{picture}[{text}]({REPOSITORY}/{kind}/v{VERSION}/{path})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", absolute, (ROOT / file).read_text())
