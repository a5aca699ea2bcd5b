#!/usr/bin/env node
// Starts the program of the package for this platform, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
const program = process.platform === "win32" ? "mcp-sidecar.exe" : "mcp-sidecar";

function find() {
  try {
    return require.resolve(`@mcp-sidecar/${platform}/${program}`);
  } catch {
    console.error(
      `mcp-sidecar: the package @mcp-sidecar/${platform} is not installed. If you installed without optional ` +
        "dependencies, install again with them. Otherwise there is no package for this platform: see " +
        require("./package.json").homepage.replace("#readme", "/blob/main/docs/install.md"),
    );
    process.exit(1);
  }
}

const child = spawn(find(), process.argv.slice(2), { stdio: "inherit", windowsHide: true });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // The program decides how it ends. A terminal sends Ctrl+C to both processes.
  process.on(signal, () => signal === "SIGINT" || child.kill(signal));
}
child.on("error", error => {
  console.error(`mcp-sidecar: cannot start ${child.spawnfile}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
