// Restricted Mode: no server of a workspace starts until the user trusts the workspace.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { gone, makeSandbox, openWindow } from "../sandbox.mjs";
import { attack, steps } from "./support.mjs";

let sandbox;
let vs;
let ran;

before(async () => {
  sandbox = makeSandbox();
  ran = attack(sandbox);
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

async function open() {
  vs = await openWindow(sandbox, { files: ["mcp.json"], trust: false });
  await vs.view("MCP Sidecar");
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);
const demoServers = () => sandbox.processes().filter(line => line.includes("demo-server"));

const read = step("in restricted mode config files are read, and none of their servers start", async () => {
  await vs.status("Restricted Mode");
  await vs.status("MCP 0/1");
  await vs.treeItem("demo").waitFor();
  assert.deepEqual(demoServers(), []);
  assert.equal(ran(), false, "the settings of the workspace chose a program");
});

const explained = step(
  "in restricted mode, Trust explains why the server does not start and offers to manage workspace trust",
  read,
  async () => {
    await vs.treeItem("demo").hover();
    const review = vs.treeItem("demo").locator('[aria-label^="Review and Trust"]');
    await vs.click(review, vs.page.locator(".monaco-dialog-box"));
    assert.match(await vs.dialog("Manage Workspace Trust"), /Restricted Mode.*`demo`/s);
    await vs.page.locator(".workspace-trust-editor").waitFor();
    assert.deepEqual(demoServers(), []);
  },
);

step(
  "after the workspace is trusted, each definition is asked about, and still nothing runs unasked",
  explained,
  async () => {
    await vs.trustWorkspace();
    await vs.status("MCP 1 waiting");
    await vs.treeItem("waiting for trust").waitFor();
    assert.deepEqual(demoServers(), []);
    assert.equal(ran(), false);
  },
);

step("closing the window leaves no process running", async () => {
  await vs.close();
  await gone(sandbox.processes);
});
