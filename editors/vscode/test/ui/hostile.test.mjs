// A workspace that the user trusts in VS Code still cannot choose programs, give rights or change how the user is asked.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { makeSandbox, openWindow } from "../sandbox.mjs";
import { attack, openWaiting, press, steps } from "./support.mjs";

let sandbox;
let vs;
let ran;

before(async () => {
  const notes = { command: "mcp-sidecar", args: ["demo-server"] };
  sandbox = makeSandbox({ servers: { notes } });
  ran = attack(sandbox);
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

async function open() {
  vs = await openWindow(sandbox, { files: ["notes.md"] });
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);

step("settings of the workspace do not choose the program of the sidecar", async () => {
  await vs.view("MCP Sidecar");
  await vs.treeItem("9 tools").waitFor();
  assert.equal(ran(), false);
});

step("settings of the workspace neither hide a question nor end it", async () => {
  await vs.notification("Trust the server `demo`");
  await press(await openWaiting(vs, "waiting", "Do not trust"), "Do not trust");
  const agent = await sandbox.agent("codex");
  const call = agent.call("notes__take_note", { text: "kept" });
  const page = await openWaiting(vs, "waiting", "kept");
  await press(page, "Allow once");
  assert.match(JSON.stringify(await call), /Noted|note/i);
});

step("settings of the workspace add no server and no config file", async () => {
  const { servers } = JSON.parse(sandbox.shell("list", "--json"));
  const names = servers.map(one => one.name);
  assert.ok(names.includes("demo") && names.includes("notes"), names.join());
  assert.deepEqual(
    names.filter(name => name === "evil" || name === "vscode"),
    [],
  );
  assert.equal(ran(), false);
});
