/** Start and restart of the sidecar in a window, and the tree of its servers. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { connected, eventually, extension } from "./support";

describe("the sidecar", () => {
  it("starts in a workspace that has a config file", async function () {
    const { sidecar, activationMs } = await extension();
    assert.equal(sidecar.runStatus, "running");
    assert.equal(sidecar.binary?.from, "environment");
    // Reported, not checked: the time depends on the machine.
    if (this.test) {
      this.test.title += ` [activation ${activationMs.toFixed(1)} ms]`;
    }
  });

  it("shows servers, their tools and levels as a tree", async () => {
    const { servers } = await extension();
    await connected("demo");
    const roots = await servers.getChildren();
    const demo = roots.find(node => node.kind === "server" && node.server === "demo");
    assert.ok(demo);
    const groups = await servers.getChildren(demo);
    assert.deepEqual(
      groups.map(node => node.kind === "group" && node.group),
      ["tools", "resources", "prompts"],
    );
    const tools = (await servers.getChildren(groups[0])).map(node => servers.getTreeItem(node));
    const labels = tools.map(item => `${item.label}: ${item.description}`);
    assert.ok(labels.includes("take_note: require-approval"), labels.join("\n"));
    assert.ok(labels.includes("echo: allow-session · read-only"), labels.join("\n"));
  });

  it("restarts, and its servers start again", async () => {
    const { sidecar } = await extension();
    await connected("demo");
    const statuses: string[] = [];
    const listening = sidecar.onRunStatus(runStatus => statuses.push(runStatus));
    await vscode.commands.executeCommand("mcpSidecar.restart");
    listening.dispose();
    assert.deepEqual([...new Set(statuses)], ["off", "starting", "running"]);
    await eventually("demo again", () => sidecar.state.server("demo")?.status === "connected");
  });

  it("applies a saved file at once, and starts no server that is not trusted", async () => {
    const { sidecar } = await extension();
    const folder = vscode.workspace.workspaceFolders?.[0];
    assert.ok(folder);
    const added = vscode.Uri.joinPath(folder.uri, "mcp.local.json");
    const text = JSON.stringify({ servers: { second: { command: "mcp-sidecar", args: ["demo-server"] } } });
    await vscode.workspace.fs.writeFile(added, Buffer.from(text));
    const second = await eventually("the new server", () => sidecar.state.server("second"));
    assert.deepEqual([second.status, second.needsTrust, second.pid], ["pending", true, undefined]);
    await vscode.workspace.fs.delete(added);
    await eventually("it goes", () => !sidecar.state.server("second"));
  });
});
