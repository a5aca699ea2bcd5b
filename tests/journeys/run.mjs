// node tests/journeys/run.mjs PACKAGES [--pictures FOLDER] [--write] [NAME]...
//
// Takes the way of a new user from an empty machine to the first useful call, and prints how many steps and seconds that
// took. PACKAGES is the folder that the packaging scripts wrote. --write puts the table on docs/journeys.md. The variables
// MCP_JOURNEY_* name the programs that the user already has; see scripts/journeys.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { JOURNEYS } from "./journeys.mjs";
import { Machine } from "./machine.mjs";
import { mirrorGitHub, startNetwork } from "./network.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const options = { pictures: { type: "string" }, write: { type: "boolean" } };
const { values, positionals } = parseArgs({ allowPositionals: true, options });
const [packages, ...names] = positionals;
const unknown = names.find(name => !(name in JOURNEYS));
if (!packages || unknown) {
  console.error(`usage: run.mjs PACKAGES [--pictures FOLDER] [--write] [${Object.keys(JOURNEYS).join("|")}]...`);
  process.exit(2);
}
const chosen = names.length > 0 ? names : Object.keys(JOURNEYS);
const programs = Object.fromEntries(
  ["nvim", "lazy", "vsix", "agents", "files"].map(name => [name, process.env[`MCP_JOURNEY_${name.toUpperCase()}`]]),
);

const github = fs.mkdtempSync(path.join(os.tmpdir(), "journey-github-"));
const network = await startNetwork(packages);
const failures = [];
const rows = [];
try {
  const repositories = { "mcp-sidecar/mcp-sidecar": root, ...(programs.lazy && { "folke/lazy.nvim": programs.lazy }) };
  const needsGit = chosen.some(name => name === "neovim" || name === "pack");
  const gitConfig = needsGit ? mirrorGitHub(github, repositories) : os.devNull;
  for (const name of chosen) {
    const { pictures } = values;
    const machine = new Machine({ name, network, gitConfig, pictures, agents: programs.agents });
    const { title, run } = JOURNEYS[name];
    try {
      await run(machine, programs);
      console.log(`${title}: ${machine.steps.length} steps, ${machine.seconds.toFixed(1)} s`);
      rows.push({ name, title, steps: machine.steps, seconds: machine.seconds });
    } catch (error) {
      failures.push(`${title}, after ${machine.steps.at(-1) ?? "no step"}: ${error.message}`);
    } finally {
      await machine.close();
    }
  }
} finally {
  network.close();
  fs.rmSync(github, { recursive: true, force: true });
}
for (const failure of failures) {
  console.log(`\n${failure}`);
}
if (values.write && failures.length === 0) {
  writePage(rows);
}
process.exitCode = failures.length > 0 ? 1 : 0;

/** Replaces the generated part of the page. */
function writePage(rows) {
  const page = path.join(root, "docs/journeys.md");
  const text = fs.readFileSync(page, "utf8");
  const cell = text => text.replaceAll("|", "\\|");
  const table = rows.map(({ title, steps, seconds }) => `| ${cell(title)} | ${steps.length} | ${seconds.toFixed(0)} s |`);
  const lists = rows.map(
    ({ title, steps }) => `**${title}**\n\n${steps.map((step, place) => `${place + 1}. ${step}`).join("\n")}\n`,
  );
  const date = new Date().toISOString().slice(0, 10);
  const made = [`Measured on ${date}:`, "", "| you | steps | first useful call after |", "|---|---|---|", ...table, "", ...lists];
  const [before, , after] = text.split(/(?<=<!-- generated: journeys -->\n)([^]*)(?=<!-- end of generated part -->)/);
  fs.writeFileSync(page, `${before}\n${made.join("\n")}\n${after}`);
}
