// The table of agents and cases: its cells for the terminal, and the part of docs/agents.md that it is written to.
import fs from "node:fs";
import path from "node:path";
import { AGENTS } from "./agents.mjs";
import { CASES } from "./cases.mjs";

const PAGE = new URL("../../docs/agents.md", import.meta.url).pathname;
const [BEGIN, END] = ["<!-- generated: agents-table -->\n", "<!-- end of generated part -->"];

/** What the cell of an agent that passes says: `ok`, or what the agent itself cannot do. */
export const expected = (agent, name) => CASES[name].limits?.[agent]?.says ?? "ok";

/** How wide the column of an agent is in the terminal. */
export const width = (agent, cases) => Math.max(agent.length, 4, ...cases.map(name => expected(agent, name).length));

/** Writes the table to docs/agents.md, after every cell was as expected. `installed` is the folder with the agents. */
export function writePage(installed) {
  const [agents, cases] = [Object.keys(AGENTS), Object.keys(CASES)];
  const version = agent => {
    const file = path.join(installed, "node_modules", AGENTS[agent].package, "package.json");
    return JSON.parse(fs.readFileSync(file, "utf8")).version;
  };
  const row = cells => `| ${cells.join(" | ")} |\n`;
  const table = [
    `Run on ${new Date().toISOString().slice(0, 10)}.\n\n`,
    row(["", ...agents.map(agent => `${AGENTS[agent].title} ${version(agent)}`)]),
    row(["", ...agents].map(() => "---")).replaceAll(" ", ""),
    ...cases.map(name => row([name, ...agents.map(agent => expected(agent, name))])),
    "\n",
    ...cases.map(name => `- **${name}**: ${CASES[name].shows}\n`),
  ];
  const [before, rest] = fs.readFileSync(PAGE, "utf8").split(BEGIN);
  const after = rest.slice(rest.indexOf(END));
  fs.writeFileSync(PAGE, before + BEGIN + table.join("") + after);
}
