/** The language features, as VS Code receives them. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { connected, eventually, extension, file, open } from "./support";

describe("config files", () => {
  before(extension);

  it("have lenses with the state of a server and its actions", async () => {
    await open("mcp.json");
    await connected("demo");
    const titles = await eventually("a lens with the number of tools", async () => {
      const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>(
        "vscode.executeCodeLensProvider",
        file("mcp.json"),
        50,
      );
      const titles = lenses.map(lens => lens.command?.title ?? "");
      return titles.some(title => title.includes("9 tools")) ? titles : undefined;
    });
    assert.ok(
      titles.some(title => title.includes("Restart")),
      titles.join(" | "),
    );
  });

  it("have diagnostics in the right places", async () => {
    await open(".cursor/mcp.json");
    const messages = await eventually("complaints", () => {
      const found = vscode.languages.getDiagnostics(file(".cursor/mcp.json"));
      return found.length > 3 ? found.map(problem => `${problem.range.start.line + 1}: ${problem.message}`) : undefined;
    });
    assert.ok(
      messages.some(message => /^6: .*comand/.test(message)),
      messages.join("\n"),
    );
  });

  it("have quick fixes", async () => {
    const { document } = await open(".cursor/mcp.json");
    const typo = await eventually("the complaint about `comand`", () =>
      vscode.languages.getDiagnostics(document.uri).find(problem => problem.message.includes("comand")),
    );
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      "vscode.executeCodeActionProvider",
      document.uri,
      typo.range,
      vscode.CodeActionKind.QuickFix.value,
      20,
    );
    const fix = actions.find(action => action.title.includes("command"));
    assert.ok(fix?.edit, actions.map(action => action.title).join(" | "));
    await vscode.workspace.applyEdit(fix.edit);
    assert.match(document.getText(), /"command": "mcp-sidecar",\n\s+"args": \["demo-server"\],\n\s+"enabled": false/);
    await eventually("the complaint goes", () =>
      vscode.languages.getDiagnostics(document.uri).every(problem => !problem.message.includes("comand")),
    );
    await vscode.commands.executeCommand("workbench.action.files.revert");
  });

  it("have completion with the live tools of a server", async () => {
    const { document } = await open("mcp.json");
    await connected("demo");
    const line = document
      .getText()
      .split("\n")
      .findIndex(text => text.includes('"take_note"'));
    const list = await vscode.commands.executeCommand<vscode.CompletionList>(
      "vscode.executeCompletionItemProvider",
      document.uri,
      new vscode.Position(line, document.lineAt(line).text.indexOf("take_note") + 2),
    );
    const labels = list.items.map(item => (typeof item.label === "string" ? item.label : item.label.label));
    assert.ok(
      labels.some(label => label.includes("forget_notes")),
      labels.join(" "),
    );
  });

  it("have hovers with the state of a server", async () => {
    const { document } = await open("mcp.json");
    const line = document
      .getText()
      .split("\n")
      .findIndex(text => text.includes('"demo":'));
    const hovers = await vscode.commands.executeCommand<vscode.Hover[]>(
      "vscode.executeHoverProvider",
      document.uri,
      new vscode.Position(line, 7),
    );
    const text = hovers.flatMap(hover => hover.contents.map(part => (typeof part === "string" ? part : part.value)));
    assert.match(text.join("\n"), /connected/);
  });

  it("other files have only the code actions of the project", async () => {
    const editor = await open("notes.md");
    editor.selection = new vscode.Selection(2, 0, 2, 10);
    // The client announces a file to the sidecar only after its tab is visible.
    await eventually("the action", async () => {
      const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
        "vscode.executeCodeActionProvider",
        editor.document.uri,
        editor.selection,
      );
      return actions.some(action => action.title === "Keep the selection as a note (from mcp.json)");
    });
    assert.deepEqual(vscode.languages.getDiagnostics(editor.document.uri), []);
  });
});
