/** The MCP server in this window, called through the sidecar as an agent calls it. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { answer } from "../../src/hosted/server";
import { call, eventually, extension, file, open } from "./support";

interface Located {
  path: string;
  name?: string;
  message?: string;
}

async function ask<T>(tool: string, given = {}): Promise<T> {
  const result = await call(`mcp__vscode__${tool}`, given);
  assert.equal(result.isError, false, JSON.stringify(result.content));
  return result.structuredContent as T;
}

describe("the server `vscode`", () => {
  before(async () => {
    const { sidecar } = await extension();
    await eventually("the server vscode", () => sidecar.state.server("vscode")?.status === "connected");
  });

  it("exists without a config file if the setting is on", async () => {
    const { sidecar } = await extension();
    assert.equal(sidecar.state.server("vscode")?.scope, "session");
    assert.equal(sidecar.state.server("vscode")?.transport, "sdk");
  });

  it("lists the files that are open", async () => {
    await open("mcp.json");
    await open("notes.md");
    const { editors } = await ask<{ editors: (Located & { active: boolean })[] }>("open_editors");
    assert.deepEqual(
      editors.filter(editor => editor.active).map(editor => editor.path),
      [file("notes.md").fsPath],
    );
  });

  it("returns the selection and its position", async () => {
    const editor = await open("notes.md");
    editor.selection = new vscode.Selection(0, 2, 0, 7);
    const given = await ask<{ text: string; first: number; cursor: object }>("selection");
    assert.equal(given.text, "Notes");
    assert.equal(given.first, 1);
    assert.deepEqual(given.cursor, { line: 1, character: 8 });
  });

  it("reads unsaved changes", async () => {
    const editor = await open("notes.md");
    await editor.edit(edit => edit.insert(new vscode.Position(0, 0), "Not saved. "));
    const result = await call("mcp__vscode__read_editor", { path: "notes.md", last: 1 });
    assert.equal(result.content[0]?.text, "Not saved. # Notes");
    await vscode.commands.executeCommand("workbench.action.files.revert");
  });

  it("returns problems, of one file or of all", async () => {
    await open(".cursor/mcp.json");
    await eventually("problems", () => vscode.languages.getDiagnostics(file(".cursor/mcp.json")).length > 0);
    const all = await ask<{ diagnostics: Located[] }>("diagnostics");
    assert.ok(all.diagnostics.some(problem => problem.message?.includes("comand")));
    const one = await ask<{ diagnostics: Located[] }>("diagnostics", { path: "notes.md" });
    assert.deepEqual(one.diagnostics, []);
  });

  it("returns the symbols of a file", async () => {
    const { symbols } = await ask<{ symbols: Located[] }>("symbols", { path: "mcp.json" });
    assert.ok(
      symbols.some(symbol => symbol.name === "demo"),
      JSON.stringify(symbols),
    );
  });

  it("does not read files outside the workspace that are not open", async () => {
    const result = await call("mcp__vscode__read_editor", { path: "/etc/hostname" });
    assert.equal(result.isError, true);
    assert.match(result.content[0]?.text ?? "", /neither open in the editor nor in its workspace/);
  });

  it("answers an unknown method with an error, and a notification not at all", async () => {
    const served = { name: "vscode", version: "1", instructions: "", tools: {} };
    assert.equal((await answer(served, { id: 1, method: "resources/list" }))?.error?.code, -32601);
    assert.equal(
      (await answer(served, { id: 2, method: "tools/call", params: { name: "toString" } }))?.error?.code,
      -32602,
    );
    assert.equal(await answer(served, { method: "notifications/initialized" }), undefined);
  });
});
