/** Shows tools, prompts, results, calls of the log and binary resources, in one panel next to the editor. */

import { commands, type Disposable, env, type TextEditor, type Uri, ViewColumn, window, workspace } from "vscode";
import { showText } from "../documents";
import type { Call, Field, PromptInfo, ResourceContents, ToolInfo, ToolResult } from "../protocol";
import { fullName } from "../text";
import { Html, html } from "../web/html";
import { type Message, type Page, Panel } from "../web/panel";
import { promptPage, toolPage } from "./definitions";
import { body, callPage, documentOf, media, plainText, resultPage, type Shown, type View } from "./page";

/** A result on the page, with the call that it came from. */
interface ShownResult extends Shown {
  tool: string;
  arguments: unknown;
  view: View;
  page(view: View, inside: Html): Page;
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
  tool(tool: ToolInfo, fields: readonly Field[]): void {
    this.panel.show({ key: `tool:${tool.name}`, title: tool.tool, body: toolPage(tool, fields) }, { focus: false });
  }

  prompt(prompt: PromptInfo): void {
    this.prompted = prompt;
    const key = `prompt:${prompt.server}:${prompt.name}`;
    this.panel.show({ key, title: prompt.name, body: promptPage(prompt) }, { focus: false });
  }

  async result(result: ToolResult, name: string, given: unknown): Promise<void> {
    const { server, content, structuredContent } = result;
    await this.draw({
      server,
      content,
      structuredContent,
      tool: name,
      arguments: given,
      view: "text",
      page: (view, inside) => ({
        key: `result:${result.callId}`,
        title: `${result.tool}: result`,
        body: resultPage(result, given, view, inside),
      }),
    });
  }

  async call(call: Call): Promise<void> {
    const shown: ShownResult = {
      server: call.server,
      content: call.result?.content ?? [],
      structuredContent: call.result?.structuredContent,
      tool: fullName(call),
      arguments: call.arguments,
      view: "text",
      page: (view, inside) => ({
        key: `call:${call.callId}`,
        title: `${call.tool}: call`,
        body: callPage(call, view, inside),
      }),
    };
    await this.draw(shown, { focus: false });
  }

  private async draw(shown: ShownResult, options?: { focus: boolean }): Promise<void> {
    this.shown = shown;
    const inside = await body(shown, shown.view, markdown);
    if (this.shown === shown) {
      this.panel.show(shown.page(shown.view, inside), options);
    }
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
    const { tool, server, uri, view } = message;
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
      await runAgain(shown.tool, shown.arguments);
    } else if (shown && send === "view") {
      await this.draw({ ...shown, view: view as View }, { focus: false });
    } else if (shown && send === "copy") {
      await env.clipboard.writeText(plainText(shown));
      window.setStatusBarMessage("$(copy) Copied", 2_000);
    } else if (shown && send === "document") {
      const { text, ending, language } = documentOf(shown, shown.view);
      await showText(`${shown.tool}.${ending}`, text, language);
    } else if (shown && send === "insert") {
      await insert(plainText(shown));
    }
  }
}

/** Opens the form of a tool with the arguments of an earlier call. The log keeps only the beginning of very long ones. */
export async function runAgain(tool: string, given: unknown): Promise<void> {
  const isCut = typeof given === "object" && given !== null && "cut" in given && "sha256" in given;
  if (isCut) {
    window.showInformationMessage(
      "The log does not contain all of these arguments, because they are too long. Fill them in again.",
    );
  }
  await commands.executeCommand("mcpSidecar.tool.call", { tool, arguments: isCut ? {} : given });
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
