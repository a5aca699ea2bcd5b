"""The crates that are linked into the program: their licences as a text, and the list as an SBOM (CycloneDX 1.5)."""

import datetime
import json
import re
import uuid
from pathlib import Path

from project import LICENSE, REPOSITORY, ROOT, VERSION, cargo_metadata, timestamp

LICENCE_FILE = re.compile(r"^(licen[cs]e|copying|notice|unlicense)", re.IGNORECASE)


class Dependencies:
    def __init__(self, target):
        self.target = target
        metadata = cargo_metadata("--filter-platform", target)
        self.packages = {package["id"]: package for package in metadata["packages"]}
        self.nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        self.root = metadata["resolve"]["root"]
        reached, waiting = set(), [self.root]
        while waiting:
            package = waiting.pop()
            if package not in reached:
                reached.add(package)
                waiting += self.linked(package)
        order = lambda package: (self.packages[package]["name"], self.packages[package]["version"])
        self.ids = sorted(reached - {self.root}, key=order)

    def linked(self, package):
        """Direct dependencies of the program itself, without those of tests and build scripts."""
        normal = lambda dependency: any(kind["kind"] is None for kind in dependency["dep_kinds"])
        return [dependency["pkg"] for dependency in self.nodes[package]["deps"] if normal(dependency)]

    def licences(self):
        """Every licence text once, with the crates that it applies to."""
        texts = {}
        for package in (self.packages[id] for id in self.ids):
            name = f"{package['name']} {package['version']} ({package['license'] or 'see the text'})"
            folder = Path(package["manifest_path"]).parent
            files = sorted(file for file in folder.iterdir() if file.is_file() and LICENCE_FILE.match(file.name))
            if not files:
                texts.setdefault("The crate contains no licence file. LICENSE-MIT and LICENSE-APACHE contain the usual texts.", []).append(name)
            for file in files:
                text = file.read_text(errors="replace").replace("\r\n", "\n").strip()
                texts.setdefault(text, []).append(name)
        parts = [f"mcp-sidecar {VERSION} contains the following {len(self.ids)} crates.\n"]
        for text, names in sorted(texts.items(), key=lambda item: item[1]):
            parts.append("\n".join(["=" * 80, *names, "-" * 80, "", text, ""]))
        return "\n".join(parts)

    def sbom(self):
        reference = lambda id: f"pkg:cargo/{self.packages[id]['name']}@{self.packages[id]['version']}"
        checksums = locked_checksums()

        def component(id):
            package = self.packages[id]
            found = {
                "type": "library",
                "bom-ref": reference(id),
                "name": package["name"],
                "version": package["version"],
                "purl": reference(id),
            }
            if package["license"]:
                # Before SPDX expressions, Cargo separated alternatives with a slash.
                expression = re.sub(r"\s*/\s*", " OR ", package["license"])
                found["licenses"] = [{"expression": expression}]
            checksum = checksums.get((package["name"], package["version"]))
            if checksum:
                found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
            return found

        depends = lambda id: {"ref": reference(id), "dependsOn": sorted({reference(other) for other in self.linked(id)})}
        program = {
            "type": "application",
            "bom-ref": reference(self.root),
            "name": "mcp-sidecar",
            "version": VERSION,
            "purl": reference(self.root),
            "licenses": [{"expression": LICENSE}],
            "externalReferences": [{"type": "vcs", "url": REPOSITORY}],
        }
        made = datetime.datetime.fromtimestamp(timestamp(), datetime.timezone.utc)
        bom = {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "component": program,
                "properties": [{"name": "cargo:target", "value": self.target}],
            },
            "components": [component(id) for id in self.ids],
            "dependencies": [depends(id) for id in [self.root, *self.ids]],
        }
        serial = uuid.uuid5(uuid.NAMESPACE_URL, REPOSITORY + json.dumps(bom, sort_keys=True))
        return json.dumps({**bom, "serialNumber": f"urn:uuid:{serial}"}, indent=2) + "\n"


def locked_checksums():
    entry = re.compile(r'name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "(.+)"')
    return {(name, version): sum for name, version, sum in entry.findall((ROOT / "Cargo.lock").read_text())}
