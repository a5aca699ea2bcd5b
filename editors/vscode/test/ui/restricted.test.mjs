// Restricted Mode: no server of a workspace starts until the user trusts the workspace.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gone, makeSandbox, openWindow } from "../sandbox.mjs";
import { attack } from "./support.mjs";

let sandbox;
let vs;
let ran;

before(async () => {
  sandbox = makeSandbox();
  ran = attack(sandbox);
  vs = await openWindow(sandbox, { files: ["mcp.json"], trust: false });
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

const demoServers = () => sandbox.processes().filter(line => line.includes("demo-server"));

test("in restricted mode config files are read, and none of their servers start", async () => {
  await vs.status("Restricted Mode");
  await vs.status("MCP 0/1");
  await vs.view("MCP Sidecar");
  await vs.treeItem("demo").waitFor();
  assert.deepEqual(demoServers(), []);
  assert.equal(ran(), false, "the settings of the workspace chose a program");
});

test("in restricted mode, Trust explains why the server does not start and offers to manage workspace trust", async () => {
  await vs.treeItem("demo").hover();
  await vs.treeItem("demo").locator('[aria-label^="Review and Trust"]').click();
  assert.match(await vs.dialog("Manage Workspace Trust"), /Restricted Mode.*`demo`/s);
  await vs.page.locator(".workspace-trust-editor").waitFor();
  assert.deepEqual(demoServers(), []);
});

test("after the workspace is trusted, each definition is asked about, and still nothing runs unasked", async () => {
  await vs.trustWorkspace();
  await vs.status("MCP 1 waiting");
  await vs.treeItem("waiting for trust").waitFor();
  assert.deepEqual(demoServers(), []);
  assert.equal(ran(), false);
});

test("closing the window leaves no process running", async () => {
  await vs.close();
  await gone(sandbox.processes);
});
