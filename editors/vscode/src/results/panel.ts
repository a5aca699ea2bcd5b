/** Shows results, calls of the log and resources that are no text, each in the one panel beside the editor. */

import { commands, type Disposable, env, type TextEditor, type Uri, ViewColumn, window, workspace } from "vscode";
import { showText } from "../documents";
import type { Call, Content, ResourceContents, ToolResult } from "../protocol";
import { Html, html } from "../web/html";
import { Panel } from "../web/panel";
import { body, callPage, jsonOf, media, plainText, resultPage } from "./page";

interface Shown {
  tool: string;
  arguments: unknown;
  content: Content[];
  structuredContent?: unknown;
}

export class Results implements Disposable {
  private readonly panel: Panel;
  private shown: Shown | undefined;

  constructor(extension: Uri) {
    this.panel = new Panel(extension, "mcpSidecar.result", ViewColumn.Beside);
    this.panel.onMessage(message => this.act(message.send, message));
  }

  async result(result: ToolResult, name: string, given: unknown): Promise<void> {
    this.shown = { ...result, tool: name, arguments: given };
    const inside = await body(result.server, result.content, result.structuredContent, markdown);
    this.panel.show(`${result.tool}: result`, resultPage(result, given, inside));
  }

  async call(call: Call): Promise<void> {
    const content = call.result?.content ?? [];
    const structured = call.result?.structuredContent;
    this.shown = {
      tool: `mcp__${call.server}__${call.tool}`,
      arguments: call.arguments,
      content,
      structuredContent: structured,
    };
    this.panel.show(`${call.tool}: call`, callPage(call, await body(call.server, content, structured, markdown)));
  }

  resource(server: string, uri: string, contents: readonly ResourceContents[]): void {
    const part = ({ text, blob, mimeType }: ResourceContents) =>
      text === undefined ? media(mimeType, blob) : html`<pre>${text}</pre>`;
    this.panel.show(uri, html`<h1>${uri}</h1><p class="soft">${server}</p>${contents.map(part)}`);
  }

  dispose(): void {
    this.panel.dispose();
  }

  private async act(what: string, message: Record<string, unknown>): Promise<void> {
    if (what === "resource") {
      await commands.executeCommand("mcpSidecar.resource.open", { server: message.server, uri: message.uri });
      return;
    }
    const shown = this.shown;
    if (!shown) {
      return;
    }
    const text = plainText(shown);
    if (what === "again") {
      await commands.executeCommand("mcpSidecar.tool.call", { tool: shown.tool, arguments: shown.arguments });
    } else if (what === "copy") {
      await env.clipboard.writeText(text);
      window.setStatusBarMessage("$(copy) copied", 2_000);
    } else if (what === "document") {
      const json = jsonOf(shown) !== undefined;
      await showText(`${shown.tool}.${json ? "json" : "md"}`, text, { language: json ? "json" : "markdown" });
    } else if (what === "insert") {
      await insert(text);
    }
  }
}

/** Puts a text at the cursor of an editor that can take it, else into a new document. */
export async function insert(text: string): Promise<void> {
  const writable = (editor: TextEditor | undefined) => /^(file|untitled)$/.test(editor?.document.uri.scheme ?? "");
  const editor = [window.activeTextEditor, ...window.visibleTextEditors].find(writable);
  if (editor && (await editor.edit(edit => edit.replace(editor.selection, text)))) {
    await window.showTextDocument(editor.document, editor.viewColumn);
    return;
  }
  await window.showTextDocument(await workspace.openTextDocument({ content: text, language: "markdown" }));
}

/** By VS Code's own markdown; where it is switched off, as plain text. */
async function markdown(text: string): Promise<Html> {
  try {
    // A tool's own HTML stays text: it must not look like a button of ours. The space in it has no width.
    const tame = text.replace(/<(?=[a-z/!?])/gi, "<\u200b");
    return new Html(await commands.executeCommand<string>("markdown.api.render", tame));
  } catch {
    return html`<pre>${text}</pre>`;
  }
}
