/** Files that are not config files stay in the editor: they are neither sent to the sidecar nor announced. */

import * as assert from "node:assert/strict";
import type { Writable } from "node:stream";
import * as vscode from "vscode";
import { connected, eventually, extension, file, open } from "./support";

/** A variable of an action. */
const variable = (name: string) => `$\{${name}}`;

/** How many bytes the extension has written to the sidecar so far. */
async function sent(): Promise<number> {
  const { sidecar } = await extension();
  const { client } = sidecar as unknown as {
    client: { _serverProcess: { stdin: Writable & { bytesWritten: number } } };
  };
  return client._serverProcess.stdin.bytesWritten;
}

/** The titles of the code actions at the selection, as the menu lists them. */
async function menu(editor: vscode.TextEditor): Promise<string[]> {
  const { document, selection } = editor;
  const command = "vscode.executeCodeActionProvider";
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(command, document.uri, selection);
  return actions.map(action => action.title);
}

describe("an ordinary file", () => {
  const large = () => file("large.txt");
  before(async () => {
    await connected("demo");
    await vscode.workspace.fs.writeFile(large(), Buffer.from("some words of a long text\n".repeat(140_000)));
  });
  after(() => vscode.workspace.fs.delete(large()));

  it("of 3.6 MB is opened, typed in, saved and closed without a byte to the sidecar", async () => {
    const editor = await open("large.txt");
    assert.ok(editor.document.getText().length > 3_600_000);
    await menu(editor); // Lists the actions for this type of file, once.
    // What the servers do meanwhile is not about this file.
    let before = await sent();
    await eventually("the sidecar is quiet", async () => {
      const now = await sent();
      const quiet = now === before;
      before = now;
      return quiet;
    });
    for (const letter of "typing 21 characters.") {
      await editor.edit(edit => edit.insert(editor.selection.active, letter));
      await menu(editor);
    }
    assert.match(editor.document.lineAt(0).text, /typing 21 characters\./);
    await editor.document.save();
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    assert.equal((await sent()) - before, 0);
  });

  it("shows an action by a light bulb only if its `filetypes` name the type of the file", async () => {
    const { sidecar } = await extension();
    const config = {
      actions: [
        { title: "Everywhere", tool: "mcp__demo__echo", arguments: { text: variable("selection") } },
        { title: "In notes", tool: "mcp__demo__echo", arguments: { text: variable("word") }, filetypes: ["markdown"] },
      ],
    };
    await vscode.workspace.fs.writeFile(file("mcp.local.json"), Buffer.from(JSON.stringify(config)));
    try {
      const listed = (filetype: string) => sidecar.command("mcp.actions", { filetype });
      const titled = (title: string) => (one: { title: string }) => one.title.startsWith(title);
      const { actions } = await eventually("the new actions", async () => {
        const found = await listed("markdown");
        return found.actions.some(titled("In notes")) ? found : undefined;
      });
      assert.deepEqual(
        ["Everywhere", "In notes", "Call MCP tool…"].map(title => actions.find(titled(title))?.automatic),
        [false, true, false],
      );
      assert.ok(!(await listed("rust")).actions.some(titled("In notes")));
      // Both are in the menu, which the user opens.
      const titles = await menu(await open("notes.md"));
      assert.ok(
        titles.some(title => title.startsWith("Everywhere")) && titles.some(title => title.startsWith("In notes")),
      );
    } finally {
      await vscode.workspace.fs.delete(file("mcp.local.json"));
    }
  });

  it("gives an action its text as it stands in the editor, and takes its result", async () => {
    const action = {
      title: "Shout",
      tool: "mcp__demo__echo",
      arguments: { text: `${variable("selection")}!` },
      result: "replace",
    };
    await vscode.workspace.fs.writeFile(file("mcp.local.json"), Buffer.from(JSON.stringify({ actions: [action] })));
    const editor = await open("notes.md");
    try {
      await editor.edit(edit => edit.insert(new vscode.Position(0, 0), "not saved, "));
      editor.selection = new vscode.Selection(0, 0, 0, 9);
      const command = "vscode.executeCodeActionProvider";
      const found = await eventually("the action", async () => {
        const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
          command,
          editor.document.uri,
          editor.selection,
        );
        return actions.find(one => one.title.startsWith("Shout"));
      });
      assert.ok(found.command);
      const running = vscode.commands.executeCommand(found.command.command, ...(found.command.arguments ?? []));
      const { sidecar } = await extension();
      // The action is from another file than the server, so the user is asked.
      const question = await eventually("the question", () => sidecar.state.approvals.find(one => one.kind === "tool"));
      assert.deepEqual(question.arguments, { text: "not saved!" });
      await vscode.commands.executeCommand("mcpSidecar.approval.allowOnce", question);
      await running;
      assert.match(editor.document.lineAt(0).text, /^not saved!, # Notes/);
    } finally {
      await vscode.commands.executeCommand("workbench.action.files.revert");
      await vscode.workspace.fs.delete(file("mcp.local.json"));
    }
  });
});
