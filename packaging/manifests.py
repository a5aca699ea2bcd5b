"""manifests.py FOLDER: writes the files of other package managers to FOLDER/manifests.

They name the archives in the folder and their checksums. Where each file goes is in docs/releasing.md.
"""

import json
import string
import sys
from pathlib import Path

from project import (DESCRIPTION, DOWNLOADS, REGISTRY_NAME, REPOSITORY, ROOT, VERSION, archive_name, archives,
                     program_name, sha256, target_named)

SERVER_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def main(folder):
    found = archives(folder)
    out = Path(folder) / "manifests"
    values = {"version": VERSION, "repository": REPOSITORY, "description": DESCRIPTION, "downloads": DOWNLOADS}
    values["slug"] = REPOSITORY.removeprefix("https://github.com/")
    values["homebrew"] = homebrew(found)
    values["mason"] = "\n".join(mason(target) for target, _ in found)
    values |= aur(found)
    for template in sorted((ROOT / "packaging/templates").iterdir()):
        write(out / template.name, string.Template(template.read_text()).substitute(values))
    write(out / "server.json", json.dumps(server(), indent=2) + "\n")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(path)


def homebrew(found):
    """The blocks of the formula that choose an archive."""
    blocks = []
    for system, part in [("macos", "apple-darwin"), ("linux", "unknown-linux-gnu")]:
        lines = []
        for cpu, name in [("arm", "aarch64"), ("intel", "x86_64")]:
            target = target_named(f"{name}-{part}")
            for _, path in [pair for pair in found if pair[0] is target]:
                lines += [f"    on_{cpu} do", f'      url "{DOWNLOADS}/{archive_name(target)}"',
                          f'      sha256 "{sha256(path)}"', "    end"]
        if lines:
            blocks.append("\n".join([f"  on_{system} do", *lines, "  end"]))
    return "\n\n".join(blocks)


def aur(found):
    """The lines of the PKGBUILD that depend on the targets."""
    linux = [(target["target"].split("-")[0], path) for target, path in found if "linux" in target["target"]]
    url = "$url/releases/download/v$pkgver/mcp-sidecar-$pkgver-{}-unknown-linux-gnu.tar.gz"
    sources = [f'source_{cpu}=("{url.format(cpu)}")\nsha256sums_{cpu}=(\'{sha256(path)}\')' for cpu, path in linux]
    return {"aur_arch": " ".join(f"'{cpu}'" for cpu, _ in linux), "aur_sources": "\n".join(sources)}


def mason(target):
    name = archive_name(target)
    program = f"{name.removesuffix('.tar.gz')}/{program_name(target)}"
    version = lambda text: text.replace(VERSION, '{{ version | strip_prefix "v" }}')
    return f"    - target: {target['mason']}\n      file: {version(name)}\n      bin: {version(program)}"


def server():
    """For the MCP registry: how clients start mcp-sidecar as an MCP server."""
    # The registry accepts 100 characters.
    description = "All MCP servers of a workspace behind one endpoint; no tool runs without your permission"
    connect = [{"type": "positional", "value": "connect"}]
    package = lambda kind, name, hint: {
        "registryType": kind,
        "identifier": name,
        "version": VERSION,
        "runtimeHint": hint,
        "transport": {"type": "stdio"},
        "packageArguments": connect,
    }
    return {
        "$schema": SERVER_SCHEMA,
        "name": REGISTRY_NAME,
        "title": "MCP Sidecar",
        "description": description,
        "version": VERSION,
        "repository": {"url": REPOSITORY, "source": "github"},
        "packages": [package("npm", "@mcp-sidecar/cli", "npx"), package("pypi", "mcp-sidecar", "uvx")],
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
