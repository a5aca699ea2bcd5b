"""npm.py FOLDER: makes npm packages from the release archives in the folder, and writes them there.

One package for each platform contains its binary. The package that users install, @mcp-sidecar/cli, names all of them as
optional dependencies, so that npm installs the one that fits. No package has an install script.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from project import (DESCRIPTION, LICENSE, LICENSE_FILES, PACKAGE, REGISTRY_NAME, REPOSITORY, ROOT, VERSION, absolute_links, archives,
                     program_name, read_from_archive)

SCOPE = "@mcp-sidecar"


def main(folder):
    folder = Path(folder).resolve()
    common = {
        "version": VERSION,
        "license": LICENSE,
        "repository": {"type": "git", "url": f"git+{REPOSITORY}.git"},
        "homepage": f"{REPOSITORY}#readme",
    }
    platforms = {}
    for target, archive in archives(folder):
        fits, program = target["npm"], program_name(target)
        name = f"{SCOPE}/{fits['os']}-{fits['cpu']}"
        platforms[name] = VERSION
        only = {key: [value] for key, value in fits.items()}
        description = f"The program of {SCOPE}/cli for {fits['os']}-{fits['cpu']}"
        texts = {"README.md": f"# {name}\n\n{description}. Install `{SCOPE}/cli` instead.\n".encode()}
        licenses = [*LICENSE_FILES, "THIRD-PARTY-LICENSES.txt"]
        texts |= {file: read_from_archive(archive, file) for file in licenses}
        package = {"name": name, "description": description, **common, **only, "preferUnplugged": True}
        pack(folder, package, texts, {program: read_from_archive(archive, program)})
    package = {
        "name": f"{SCOPE}/cli",
        "description": DESCRIPTION,
        "mcpName": REGISTRY_NAME,
        "keywords": PACKAGE["keywords"],
        **common,
        "bin": {"mcp-sidecar": "mcp-sidecar.js"},
        "engines": {"node": ">=18"},
        "optionalDependencies": platforms,
    }
    texts = {file: (ROOT / file).read_bytes() for file in LICENSE_FILES}
    texts["README.md"] = absolute_links("README.md").encode()
    pack(folder, package, texts, {"mcp-sidecar.js": (ROOT / "packaging/npm/mcp-sidecar.js").read_bytes()})


def pack(folder, package, texts, programs):
    with tempfile.TemporaryDirectory() as stage:
        for mode, files in [(0o644, texts), (0o755, programs)]:
            for name, content in files.items():
                file = Path(stage) / name
                file.write_bytes(content)
                file.chmod(mode)
        names = {**package, "files": sorted([*texts, *programs])}
        (Path(stage) / "package.json").write_text(json.dumps(names, indent=2) + "\n")
        command = ["npm", "pack", "--silent", "--pack-destination", str(folder)]
        made = subprocess.run(command, cwd=stage, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(folder / made.split()[-1])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
