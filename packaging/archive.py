"""archive.py BINARY TARGET FOLDER: writes the release archive of one target, and its SBOM, to the folder.

The archive contains the binary, shell completions, man pages and licences. The binary must run on this machine, because it
prints its own completions and man pages.
"""

import gzip
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from dependencies import Dependencies
from project import LICENSE_FILES, ROOT, VERSION, archive_name, program_name, target_named, timestamp

COMPLETIONS = {"bash": "mcp-sidecar.bash", "elvish": "mcp-sidecar.elv", "fish": "mcp-sidecar.fish",
               "powershell": "_mcp-sidecar.ps1", "zsh": "_mcp-sidecar"}


def main(binary, name, folder):
    target, binary, folder = target_named(name), Path(binary).resolve(), Path(folder)
    run = lambda *arguments: subprocess.run([binary, *arguments], check=True, stdout=subprocess.PIPE).stdout
    if run("--version").split()[-1].decode() != VERSION:
        raise SystemExit(f"{binary} is not version {VERSION}")
    dependencies = Dependencies(name)
    files = {program_name(target): binary.read_bytes()}
    for file in ["README.md", "CHANGELOG.md", *LICENSE_FILES]:
        files[file] = (ROOT / file).read_bytes()
    files["THIRD-PARTY-LICENSES.txt"] = dependencies.licences().encode()
    for shell, file in COMPLETIONS.items():
        files[f"completions/{file}"] = run("completions", shell)
    with tempfile.TemporaryDirectory() as pages:
        run("man", pages)
        for page in Path(pages).iterdir():
            files[f"man/man1/{page.name}"] = page.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / archive_name(target)
    path.write_bytes(packed(files, path.name.removesuffix(".tar.gz"), program_name(target)))
    (folder / f"{path.name.removesuffix('.tar.gz')}.cdx.json").write_text(dependencies.sbom())
    print(path)


def packed(files, top, program):
    """A tar.gz that depends on nothing but its content and the time of the commit."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), timestamp(), 0o755 if name == program else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(tar.getvalue(), mtime=timestamp())


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
