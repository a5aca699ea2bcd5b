"""wheel.py FOLDER: makes a Python wheel from each release archive in the folder, and writes it there.

A wheel contains the binary of the archive, so nothing is compiled twice. It has no Python code: installers copy the binary
to the folder of scripts.
"""

import base64
import hashlib
import sys
import time
import zipfile
from pathlib import Path

from project import (DESCRIPTION, LICENSE, LICENSE_FILES, PACKAGE, REGISTRY_NAME, REPOSITORY, VERSION, absolute_links, archives,
                     program_name, read_from_archive, timestamp)

LICENSES = [*LICENSE_FILES, "THIRD-PARTY-LICENSES.txt"]
NEWLINE = "\n"  # Not allowed inside the braces below by the oldest supported Python.
METADATA = f"""Metadata-Version: 2.4
Name: mcp-sidecar
Version: {VERSION}
Summary: {DESCRIPTION}
License-Expression: {LICENSE}
{NEWLINE.join(f"License-File: {name}" for name in LICENSES)}
Keywords: {",".join(PACKAGE["keywords"])}
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: Console
Classifier: Intended Audience :: Developers
Classifier: Programming Language :: Rust
Classifier: Topic :: Software Development
Requires-Python: >=3.8
Project-URL: Source, {REPOSITORY}
Project-URL: Changelog, {REPOSITORY}/blob/main/CHANGELOG.md
Description-Content-Type: text/markdown

<!-- mcp-name: {REGISTRY_NAME} -->
{absolute_links("README.md")}"""


def main(folder):
    for target, archive in archives(folder):
        info, tags = f"mcp_sidecar-{VERSION}.dist-info", target["wheel"]
        program = program_name(target)
        tag_lines = "".join(f"Tag: py3-none-{tag}\n" for tag in tags.split("."))
        files = {f"mcp_sidecar-{VERSION}.data/scripts/{program}": read_from_archive(archive, program)}
        files |= {f"{info}/licenses/{name}": read_from_archive(archive, name) for name in LICENSES}
        files[f"{info}/METADATA"] = METADATA.encode()
        wheel = f"Wheel-Version: 1.0\nGenerator: mcp-sidecar\nRoot-Is-Purelib: false\n{tag_lines}"
        files[f"{info}/WHEEL"] = wheel.encode()
        record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items())
        files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
        path = Path(folder) / f"mcp_sidecar-{VERSION}-py3-none-{tags}.whl"
        write(path, files)
        print(path)


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def write(path, files):
    made = time.gmtime(max(timestamp(), 315532800))  # A zip file cannot contain a time before 1980.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, made[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            wheel.writestr(entry, content)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
