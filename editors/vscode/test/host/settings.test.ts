/** A workspace can set only what gives it nothing. */

import * as assert from "node:assert/strict";
import { chmodSync } from "node:fs";
import * as vscode from "vscode";
import { find } from "../../src/binary";
import { BY_WORKSPACE, forwarded, setting } from "../../src/settings";
import { eventually, extension, file } from "./support";

describe("settings", () => {
  it("have a scope that says whether a workspace can set them", async () => {
    const { app } = await extension();
    const { contributes, capabilities } = app.context.extension.packageJSON;
    const found: [string, { scope: string }][] = Object.entries(contributes.configuration.properties);
    const scoped = (fits: (scope: string) => boolean) =>
      found.filter(([, { scope }]) => fits(scope)).map(([name]) => name.replace("mcpSidecar.", ""));
    assert.deepEqual(scoped(scope => !/^(machine|application)$/.test(scope)).sort(), BY_WORKSPACE.toSorted());
    const restricted: string[] = capabilities.untrustedWorkspaces.restrictedConfigurations;
    assert.deepEqual(
      restricted,
      BY_WORKSPACE.map(name => `mcpSidecar.${name}`),
    );
  });

  it("of a workspace apply only if they give it nothing", async () => {
    const { sidecar } = await extension();
    const changed = new Promise<void>(resolve => {
      const listening = vscode.workspace.onDidChangeConfiguration(event => {
        if (event.affectsConfiguration("mcpSidecar.servers.timeout")) {
          listening.dispose();
          resolve();
        }
      });
    });
    const statuses: string[] = [];
    const listening = sidecar.onRunStatus(runStatus => statuses.push(runStatus));
    const hostile = {
      "mcpSidecar.servers.timeout": "7s",
      "mcpSidecar.server.path": "/bin/false",
      "mcpSidecar.sampling": false, // The user of this test has turned it on, and the next one.
      "mcpSidecar.editorServer": false,
      "mcpSidecar.approvals.attention": "none",
      "mcpSidecar.audit": "strict",
      "mcpSidecar.files.project": ["evil.json"],
    };
    await vscode.workspace.fs.writeFile(file(".vscode/settings.json"), Buffer.from(JSON.stringify(hostile)));
    await changed;
    try {
      const { servers, audit, files } = forwarded() as Record<string, Record<string, unknown>>;
      assert.deepEqual([servers?.timeout, audit, files?.project], ["7s", null, null]);
      const names = ["server.path", "sampling", "editorServer", "approvals.attention"];
      assert.deepEqual(
        names.map(name => setting(name) ?? undefined),
        [undefined, true, true, "notification"],
      );
    } finally {
      await vscode.workspace.fs.delete(file(".vscode/settings.json"));
    }
    await eventually("the setting is gone", () => (forwarded().servers as Record<string, unknown>).timeout === null);
    listening.dispose();
    assert.deepEqual(statuses, [], "the sidecar was restarted");
  });

  it("choose a program only by an absolute path", async () => {
    const cwd = process.cwd();
    process.chdir(file("").fsPath);
    try {
      await vscode.workspace.fs.writeFile(file("program"), Buffer.from("#!/bin/sh\necho mcp-sidecar 9.9.9\n"));
      chmodSync("program", 0o755);
      const places = { extension: "/nowhere", environment: {} };
      await assert.rejects(find({ ...places, setting: "./program" }), { message: /must be an absolute path/ });
      const found = await find({ ...places, setting: file("program").fsPath });
      assert.equal(found.version, "9.9.9");
    } finally {
      await vscode.workspace.fs.delete(file("program"));
      process.chdir(cwd);
    }
  });

  it("of a workspace are not read, even if VS Code passes them on", () => {
    const { getConfiguration } = vscode.workspace;
    const inspect = () => ({ key: "", globalValue: "mine", workspaceValue: "theirs", workspaceFolderValue: "theirs" });
    Object.assign(vscode.workspace, { getConfiguration: () => ({ inspect, get: () => "theirs" }) });
    try {
      const { servers, audit, editor } = forwarded() as Record<string, Record<string, unknown>>;
      assert.deepEqual(
        [servers?.tcpHosts, audit, servers?.timeout, editor?.hideLenses],
        ["mine", "mine", "theirs", "theirs"],
      );
      assert.equal(setting("server.path"), "mine");
    } finally {
      Object.assign(vscode.workspace, { getConfiguration });
    }
  });
});
