"""vscode.py BINARY OUT: packs the built VS Code extension with the binary inside. OUT is a file or a folder.

It packs a copy, so that the checkout does not change. In the copy, the links of the README are absolute, and all texts of
package.json are in package.nls.json. To translate them, add package.nls.LANGUAGE.json to editors/vscode.
"""

import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from project import ROOT, TARGETS, VERSION, absolute_links

EXTENSION = ROOT / "editors/vscode"
TEXTS = {"category", "contents", "description", "displayName", "label", "markdownDescription", "shortTitle", "title"}
LISTS = {"enumDescriptions", "enumItemLabels", "markdownEnumDescriptions"}
MACHINES = {"x86_64": "x64", "amd64": "x64", "arm64": "arm64", "aarch64": "arm64"}


def main(binary, out):
    fits = {"os": sys.platform, "cpu": MACHINES.get(platform.machine().lower())}
    target = next(t["vscode"] for t in TARGETS if fits.items() <= t["npm"].items())
    out = Path(out).resolve()
    if out.is_dir():
        out = out / f"mcp-sidecar-{VERSION}-{target}.vsix"
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as stage:
        fill(Path(stage), Path(binary))
        vsce = [EXTENSION / "node_modules/.bin/vsce", "package", "--target", target, "--out", out]
        subprocess.run(vsce, cwd=stage, check=True, stdout=sys.stderr, shell=sys.platform == "win32")
    print(out)


def fill(stage, binary):
    for name in [".vscodeignore", "CHANGELOG.md", "LICENSE", "media", "out/extension.js"]:
        copy = shutil.copytree if (EXTENSION / name).is_dir() else shutil.copy
        (stage / name).parent.mkdir(exist_ok=True)
        copy(EXTENSION / name, stage / name)
    for translation in EXTENSION.glob("package.nls.*.json"):
        shutil.copy(translation, stage)
    (stage / "README.md").write_text(absolute_links("editors/vscode/README.md"))
    (stage / "server").mkdir()
    program = stage / "server/mcp-sidecar"
    if sys.platform == "win32":
        binary, program = binary.with_suffix(".exe"), program.with_suffix(".exe")
    shutil.copy(binary, program)
    program.chmod(0o755)
    manifest = json.loads((EXTENSION / "package.json").read_text())
    del manifest["scripts"], manifest["devDependencies"]
    texts = {}
    manifest = with_keys(manifest, "", texts)
    (stage / "package.json").write_text(json.dumps(manifest, indent=2))
    (stage / "package.nls.json").write_text(json.dumps({key: text for text, key in texts.items()}, indent=2))


def with_keys(value, path, texts):
    """The value with a key such as %commands.mcpSidecar.stop.title% for each text. Equal texts share a key."""

    def key(text, name):
        name = re.sub(r"[^\w.-]", "-", name)
        if text not in texts:
            taken = set(texts.values())
            number = next(n for n in range(len(taken) + 2) if f"{name}.{n}" not in taken) if name in taken else None
            texts[text] = name if number is None else f"{name}.{number}"
        return f"%{texts[text]}%"

    if isinstance(value, list):
        return [with_keys(each, path, texts) for each in value]
    if not isinstance(value, dict):
        return value
    result = {}
    own = next((value[name] for name in ["id", "command", "view"] if isinstance(value.get(name), str)), None)
    place = f"{path}.{own}" if own else path
    for name, each in value.items():
        inner = f"{place}.{name}".removeprefix(".").removeprefix("contributes.")
        # The name of a view is a text, too; other names are identifiers.
        is_text = name in TEXTS or (name == "name" and path.startswith("views."))
        if is_text and isinstance(each, str) and each:
            result[name] = key(each, inner)
        elif name in LISTS:
            result[name] = [key(text, f"{inner}.{number}") for number, text in enumerate(each)]
        else:
            result[name] = with_keys(each, inner, texts)
    return result


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
