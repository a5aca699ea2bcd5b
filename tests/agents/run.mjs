// node tests/agents/run.mjs BINARY AGENTS [AGENT|CASE]...
//
// Runs real agents, installed in the folder AGENTS (scripts/get-agents), against `mcp-sidecar connect`, with a model on
// loopback that does what the prompt says. Prints a table of agents and cases, and fails if a cell does. With names of
// agents or cases, runs only those. A complete run without failures also writes the table to docs/agents.md.
import path from "node:path";
import { AGENTS } from "./agents.mjs";
import { CASES } from "./cases.mjs";
import { Stage } from "./stage.mjs";
import { expected, width, writePage } from "./table.mjs";

const [binary, installed, ...names] = process.argv.slice(2);
// The names of cases contain spaces. On a command line, they may be written with hyphens.
const chosen = names.map(name => name.replaceAll("-", " "));
const program = path.resolve(binary);
const bin = path.join(path.resolve(installed), "node_modules/.bin");
const unknown = chosen.find(name => !(name in AGENTS) && !(name in CASES));
if (unknown) {
  const [agents, cases] = [AGENTS, CASES].map(all => Object.keys(all).join(", "));
  console.error(`\`${unknown}\` is neither an agent (${agents}) nor a case (${cases})`);
  process.exit(2);
}
const pick = all => {
  const names = Object.keys(all).filter(name => chosen.includes(name));
  return names.length > 0 ? names : Object.keys(all);
};

const timeout = (ms, what) =>
  new Promise((_, reject) => setTimeout(() => reject(new Error(`not within ${ms / 1000} s: ${what}`)), ms).unref());

/** Returns why the cell fails, if it does. */
async function cell(agent, name) {
  const stage = await Stage.open(agent, program, bin);
  const { limit = 120_000, run } = CASES[name];
  try {
    await Promise.race([run(stage), timeout(limit, name)]);
    return undefined;
  } catch (error) {
    return error.message;
  } finally {
    await stage.close();
  }
}

/** Runs two at a time: an agent mostly waits. Returns what they return, in order. */
async function pool(tasks) {
  const [results, waiting] = [[], [...tasks.entries()]];
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      results[next[0]] = await next[1]();
    }
  };
  await Promise.all([worker(), worker()]);
  return results;
}

const agents = pick(AGENTS);
const cases = pick(CASES);
const first = Math.max(...cases.map(name => name.length));
const line = (name, cells) =>
  `${name.padEnd(first)}  ${agents.map((agent, place) => cells[place].padEnd(width(agent, cases))).join("  ")}`.trimEnd();
console.log(line("", agents));
const failures = [];
for (const name of cases) {
  const found = await pool(agents.map(agent => () => cell(agent, name)));
  const cells = agents.map((agent, place) => {
    const limit = CASES[name].limits?.[agent];
    const reason = found[place] ?? "works";
    const isExpected = limit ? limit.because.test(reason) : !found[place];
    if (!isExpected) {
      failures.push(`\n${agent}, ${name}: ${reason}${limit ? ` (expected: it ${limit.says})` : ""}`);
    }
    return isExpected ? expected(agent, name) : "FAIL";
  });
  console.log(line(name, cells));
}
for (const failure of failures) {
  console.log(failure);
}
if (failures.length === 0 && chosen.length === 0) {
  writePage(path.resolve(installed));
}
process.exitCode = failures.length > 0 ? 1 : 0;
