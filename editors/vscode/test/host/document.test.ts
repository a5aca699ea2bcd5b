/** A value of a form that is edited in a document: to save it is to return to the form, whatever else is being saved. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { connected, eventually, file } from "./support";

/** Edits the arguments of a tool as JSON, and leaves the form when it comes back. Returns the lines that it then has. */
async function edited(text: string, save: (document: vscode.TextDocument) => Thenable<unknown>): Promise<string> {
  const { showQuickPick } = vscode.window;
  let lines = "";
  const choose = async (items: readonly vscode.QuickPickItem[]) => {
    const isFirst = lines === "";
    lines = items.map(item => `${item.label} ${item.description ?? ""}`).join("\n");
    return isFirst ? items.find(item => item.label.includes("Edit as JSON")) : undefined;
  };
  Object.assign(vscode.window, { showQuickPick: choose });
  try {
    const given = { tool: "mcp__demo__echo", arguments: { text: "before" } };
    const left = vscode.commands.executeCommand("mcpSidecar.tool.call", given);
    const editor = await eventually("the document", () => {
      const active = vscode.window.activeTextEditor;
      return active?.document.uri.scheme === "mcp-form" ? active : undefined;
    });
    const all = new vscode.Range(0, 0, editor.document.lineCount, 0);
    await editor.edit(edit => edit.replace(all, JSON.stringify({ text })));
    await save(editor.document);
    await left;
    return lines;
  } finally {
    Object.assign(vscode.window, { showQuickPick });
  }
}

describe("a text of a form that is edited in a document", () => {
  const listening: vscode.Disposable[] = [];
  const files = vscode.workspace.getConfiguration("files");

  before(() => connected("demo"));
  afterEach(async () => {
    vscode.Disposable.from(...listening.splice(0)).dispose();
    await files.update("autoSave", undefined, vscode.ConfigurationTarget.Global);
  });

  it("returns when the user saves it while VS Code is saving it", async () => {
    let finish = () => {};
    const finished = new Promise<void>(resolve => {
      finish = resolve;
    });
    const saving = new Promise<void>(resolve => {
      const hold = (save: vscode.TextDocumentWillSaveEvent) => {
        if (save.document.uri.scheme === "mcp-form" && save.reason === vscode.TextDocumentSaveReason.AfterDelay) {
          save.waitUntil(finished);
          resolve();
        }
      };
      listening.push(vscode.workspace.onWillSaveTextDocument(hold));
    });
    await files.update("autoSave", "afterDelay", vscode.ConfigurationTarget.Global);
    const lines = await edited("while saving", async () => {
      await saving;
      const done = vscode.commands.executeCommand("mcpSidecar.form.done"); // what the key that saves runs
      await vscode.commands.executeCommand("setContext", "mcpSidecar.test", true); // the window has got it
      finish();
      await done;
    });
    assert.match(lines, /text while saving/);
  });

  it("returns when the user saves it together with another document", async () => {
    const beside = file("beside.md");
    await vscode.workspace.fs.writeFile(beside, Buffer.from("beside\n"));
    const other = await vscode.workspace.openTextDocument(beside);
    const hold = (save: vscode.TextDocumentWillSaveEvent) => {
      if (save.document.uri.scheme === "mcp-form") {
        save.waitUntil(other.save());
      }
    };
    listening.push(vscode.workspace.onWillSaveTextDocument(hold));
    const change = new vscode.WorkspaceEdit();
    change.insert(beside, new vscode.Position(0, 0), "more ");
    assert.ok(await vscode.workspace.applyEdit(change));
    const lines = await edited("with another", () => vscode.commands.executeCommand("workbench.action.files.save"));
    assert.match(lines, /text with another/);
    assert.equal(other.isDirty, false);
  });
});
