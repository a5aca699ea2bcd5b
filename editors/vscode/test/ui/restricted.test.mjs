// A workspace that VS Code does not trust: nothing of it starts, whatever its files say, until the user trusts it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gone, makeDesk, openWindow } from "../desk.mjs";

let desk;
let vs;

before(async () => {
  desk = makeDesk();
  vs = await openWindow(desk, { files: ["mcp.json"], trust: false });
});
after(async () => {
  await vs?.close();
  await desk?.close();
});

const demoServers = () => desk.processes().filter(line => line.includes("demo-server"));

test("in restricted mode config files are read, and no server of theirs is started", async () => {
  await vs.status("Restricted Mode");
  await vs.status("MCP 0/1");
  await vs.view("MCP Sidecar");
  await vs.treeItem("demo").waitFor();
  assert.deepEqual(demoServers(), []);
});

test("with trust in the workspace comes the question about each definition, and still nothing runs unasked", async () => {
  await vs.trustWorkspace();
  await vs.status("MCP 1 waiting");
  await vs.treeItem("waits until you trust it").waitFor();
  assert.deepEqual(demoServers(), []);
});

test("closing the window leaves no process behind", async () => {
  await vs.close();
  await gone(desk.processes);
});
