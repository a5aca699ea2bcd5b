// What a new user gets from the internet, on loopback: the npm registry, the release, and the repositories on GitHub.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";

/** Serves `packages`, the folder that the packaging scripts write. */
export async function startNetwork(packages) {
  const npm = new Map(
    fs.readdirSync(packages).flatMap(file => {
      const [, name, version] = /^mcp-sidecar-(.+)-(\d+\.\d+\.\d+)\.tgz$/.exec(file) ?? [];
      return name ? [[`@mcp-sidecar/${name}`, { file, version }]] : [];
    }),
  );
  const server = http.createServer((request, response) => {
    const wanted = decodeURIComponent(new URL(request.url, "http://localhost").pathname).slice(1);
    const file = path.join(packages, path.basename(wanted));
    if (npm.has(wanted)) {
      const { file, version } = npm.get(wanted);
      const tarball = `${network.url}/files/${file}`;
      const integrity = `sha512-${createHash("sha512").update(fs.readFileSync(path.join(packages, file))).digest("base64")}`;
      const about = { ...manifest(path.join(packages, file)), dist: { tarball, integrity } };
      response.end(JSON.stringify({ name: wanted, "dist-tags": { latest: version }, versions: { [version]: about } }));
    } else if (/^(files|releases\/v[\d.]+)\//.test(wanted) && fs.existsSync(file)) {
      response.setHeader("content-length", fs.statSync(file).size);
      fs.createReadStream(file).pipe(response);
    } else {
      response.writeHead(404).end("{}");
    }
  });
  await new Promise(resolve => server.listen(0, "127.0.0.1", resolve));
  const network = { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
  return network;
}

const manifest = file => JSON.parse(execFileSync("tar", ["-xOzf", file, "package/package.json"], { encoding: "utf8" }));

/** Makes repositories in `folder`, each of the files or of the repository that is named, and returns a git config that finds them. */
export function mirrorGitHub(folder, repositories) {
  const git = (...words) => execFileSync("git", words, { stdio: ["ignore", "pipe", "inherit"] });
  for (const [name, from] of Object.entries(repositories)) {
    const place = path.join(folder, `${name}.git`);
    if (from.endsWith(".git") || fs.existsSync(path.join(from, "HEAD"))) {
      git("clone", "--quiet", "--bare", from, place);
    } else {
      fs.mkdirSync(place, { recursive: true });
      const work = path.join(folder, "work");
      fs.mkdirSync(work, { recursive: true });
      const files = execFileSync("git", ["-C", from, "ls-files", "-z"]);
      execFileSync("sh", ["-c", 'tar -C "$1" --null -T - -cf - | tar -C "$2" -xf -', "-", from, work], { input: files });
      const who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"];
      git("-C", work, "init", "--quiet", "--initial-branch=main");
      git("-C", work, "add", "--all", "--force");
      git("-C", work, ...who, "commit", "--quiet", "--message=Start");
      git("clone", "--quiet", "--bare", work, place);
      fs.rmSync(work, { recursive: true });
    }
    git("-C", place, "config", "uploadpack.allowFilter", "true");
    git("-C", place, "tag", "--force", "stable");
  }
  const config = path.join(folder, "gitconfig");
  fs.writeFileSync(config, `[url "file://${folder}/"]\n\tinsteadOf = https://github.com/\n`);
  return config;
}
