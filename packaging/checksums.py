"""checksums.py FOLDER: writes SHA256SUMS for the archives and SBOMs in the folder."""

import sys
from pathlib import Path

from project import VERSION, sha256

if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = Path(sys.argv[1])
    files = sorted(folder.glob(f"mcp-sidecar-{VERSION}-*.*"))
    (folder / "SHA256SUMS").write_text("".join(f"{sha256(file)}  {file.name}\n" for file in files))
    print(folder / "SHA256SUMS")
