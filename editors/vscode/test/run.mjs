// node test/run.mjs [host|ui|pictures] [WORDS]...: runs the tests in the extension host, then those in the window. With
// WORDS, only tests whose name contains them, or the window tests of the file with this name. Use `scripts/test-vscode`,
// which prepares everything.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { runExtensionTests } from "../../../scripts/vscode-drive.mjs";
import { everything, extension, makeSandbox } from "./sandbox.mjs";

const [first, ...rest] = process.argv.slice(2);
const only = first === "host" || first === "ui" ? first : undefined;
const words = (only ? rest : [first, ...rest].filter(Boolean)).join(" ");
const tests = kind => fs.readdirSync(path.join(extension, "test", kind)).filter(name => /\.test\.m?[jt]s$/.test(name));

let failed = false;
if (first === "pictures") {
  const { makePictures } = await import("./pictures.mjs");
  await makePictures(rest);
  process.exit();
}
if (only !== "ui") {
  failed = !(await hostTests());
}
if (only !== "host") {
  failed = !uiTests() || failed;
}
process.exitCode = failed ? 1 : 0;

/** One window for all of them, because starting it is slow. */
async function hostTests() {
  const outdir = path.join(extension, "out/test/host");
  fs.rmSync(outdir, { recursive: true, force: true });
  await build({
    entryPoints: tests("host").map(name => path.join(extension, "test/host", name)),
    outdir,
    bundle: true,
    format: "cjs",
    platform: "node",
    target: "node22",
    external: ["vscode"],
    sourcemap: "inline",
    logLevel: "warning",
  });
  const sandbox = makeSandbox({ servers: { everything: everything() } });
  try {
    const outcome = await runExtensionTests({
      workspace: sandbox.workspace,
      extension: [extension, path.join(extension, "test/model")],
      tests: fs.readdirSync(outdir).map(name => path.join(outdir, name)),
      env: sandbox.env,
      settings: { "mcpSidecar.editorServer": true, "mcpSidecar.sampling": true },
      // VS Code asks whether the extension may use a model of another extension.
      press: "Allow",
      timeout: 120_000,
      limit: 600_000,
      grep: words || undefined,
    });
    process.stdout.write(outcome.report);
    if (outcome.code !== 0 && outcome.results.length === 0) {
      process.stdout.write(`${outcome.log.slice(-30).join("\n")}\n${outcome.serverLog.slice(-3000)}\n`);
    }
    return outcome.code === 0 || (Boolean(words) && outcome.results.length === 0);
  } finally {
    await sandbox.close();
  }
}

function uiTests() {
  const all = tests("ui");
  const named = all.filter(name => name === `${words}.test.mjs`);
  const files = (named.length > 0 ? named : all).map(name => path.join(extension, "test/ui", name));
  if (files.length === 0) {
    return true;
  }
  const isPattern = words && named.length === 0;
  const chosen = isPattern ? ["--test-name-pattern", words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")] : [];
  const run = ["--test", "--test-concurrency=1", "--test-reporter=spec", ...chosen, ...files];
  return spawnSync(process.execPath, run, { stdio: ["ignore", "inherit", "inherit"] }).status === 0;
}
