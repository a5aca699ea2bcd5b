/** Shows tools, prompts, results, calls of the log and binary resources, in one panel beside the editor. */

import { commands, type Disposable, env, type TextEditor, type Uri, ViewColumn, window, workspace } from "vscode";
import { showText } from "../documents";
import type { Call, Content, PromptInfo, ResourceContents, ToolInfo, ToolResult } from "../protocol";
import { Html, html } from "../web/html";
import { type Message, Panel } from "../web/panel";
import { promptPage, toolPage } from "./definitions";
import { body, callPage, jsonOf, media, plainText, resultPage } from "./page";

/** A result on the page, with the call that it came from. */
interface ShownResult {
  tool: string;
  arguments: unknown;
  content: Content[];
  structuredContent?: unknown;
}

export class Results implements Disposable {
  private readonly panel: Panel;
  private shown: ShownResult | undefined;
  private prompted: PromptInfo | undefined;

  constructor(extension: Uri) {
    this.panel = new Panel(extension, "mcpSidecar.result", ViewColumn.Beside);
    this.panel.onMessage(message => this.act(message));
  }

  /** Shows what a tool does. The focus stays in the view, so that the user can look at one tool after another. */
  tool(tool: ToolInfo): void {
    this.panel.show({ key: `tool:${tool.name}`, title: tool.tool, body: toolPage(tool) }, { focus: false });
  }

  prompt(prompt: PromptInfo): void {
    this.prompted = prompt;
    const key = `prompt:${prompt.server}:${prompt.name}`;
    this.panel.show({ key, title: prompt.name, body: promptPage(prompt) }, { focus: false });
  }

  async result(result: ToolResult, name: string, given: unknown): Promise<void> {
    this.shown = { ...result, tool: name, arguments: given };
    const inside = await body(result.server, result.content, result.structuredContent, markdown);
    const key = `result:${result.callId}`;
    this.panel.show({ key, title: `${result.tool}: result`, body: resultPage(result, given, inside) });
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
    const inside = await body(call.server, content, structured, markdown);
    const page = { key: `call:${call.callId}`, title: `${call.tool}: call`, body: callPage(call, inside) };
    this.panel.show(page, { focus: false });
  }

  resource(server: string, uri: string, contents: readonly ResourceContents[]): void {
    const part = ({ text, blob, mimeType }: ResourceContents) =>
      text === undefined ? media(mimeType, blob) : html`<pre>${text}</pre>`;
    const inside = html`<h1 tabindex="-1">${uri}</h1><p class="soft">Server <code>${server}</code></p>${contents.map(part)}`;
    this.panel.show({ key: `resource:${server}:${uri}`, title: uri, body: inside }, { focus: false });
  }

  dispose(): void {
    this.panel.dispose();
  }

  private async act({ send, ...message }: Message): Promise<void> {
    const { tool, server, uri } = message;
    const shown = this.shown;
    if (send === "resource") {
      await commands.executeCommand("mcpSidecar.resource.open", { server, uri });
    } else if (send === "run") {
      await commands.executeCommand("mcpSidecar.tool.call", { tool });
    } else if (send === "level") {
      await commands.executeCommand("mcpSidecar.tool.setLevel", { tool });
      await commands.executeCommand("mcpSidecar.tool.show", { tool });
    } else if (send === "explain") {
      await commands.executeCommand("mcpSidecar.tool.explain", { tool });
    } else if (send === "prompt" && this.prompted) {
      await commands.executeCommand("mcpSidecar.prompt.insert", { prompt: this.prompted });
    } else if (shown && send === "again") {
      await commands.executeCommand("mcpSidecar.tool.call", { tool: shown.tool, arguments: shown.arguments });
    } else if (shown && send === "copy") {
      await env.clipboard.writeText(plainText(shown));
      window.setStatusBarMessage("$(copy) Copied", 2_000);
    } else if (shown && send === "document") {
      const json = jsonOf(shown) !== undefined;
      await showText(`${shown.tool}.${json ? "json" : "md"}`, plainText(shown), {
        language: json ? "json" : "markdown",
      });
    } else if (shown && send === "insert") {
      await insert(plainText(shown));
    }
  }
}

/** Inserts a text at the cursor of a writable editor, or into a new document if there is none. */
export async function insert(text: string): Promise<void> {
  const writable = (editor: TextEditor | undefined) => /^(file|untitled)$/.test(editor?.document.uri.scheme ?? "");
  const editor = [window.activeTextEditor, ...window.visibleTextEditors].find(writable);
  if (editor && (await editor.edit(edit => edit.replace(editor.selection, text)))) {
    await window.showTextDocument(editor.document, editor.viewColumn);
    return;
  }
  await window.showTextDocument(await workspace.openTextDocument({ content: text, language: "markdown" }));
}

/** Rendered by VS Code's own markdown extension, or as plain text where that is disabled. */
async function markdown(text: string): Promise<Html> {
  try {
    // HTML of a tool stays text: it must not look like one of our buttons. The inserted space has no width.
    const harmless = text.replace(/<(?=[a-z/!?])/gi, "<\u200b");
    return new Html(await commands.executeCommand<string>("markdown.api.render", harmless));
  } catch {
    return html`<pre>${text}</pre>`;
  }
}
