/** A webview that shows a page of ours: scripts only from this package, nothing from the network, colours of the theme. */

import { randomBytes } from "node:crypto";
import { type Disposable, EventEmitter, Uri, ViewColumn, type WebviewPanel, window } from "vscode";
import { type Html, html } from "./html";

export interface Message {
  /** What was pressed, by its `data-send`. */
  send: string;
  [key: string]: unknown;
}

export class Panel implements Disposable {
  private panel: WebviewPanel | undefined;
  private readonly messages = new EventEmitter<Message>();
  readonly onMessage = this.messages.event;
  private readonly closings = new EventEmitter<void>();
  readonly onClose = this.closings.event;

  constructor(
    private readonly extension: Uri,
    private readonly type: string,
    private readonly column: ViewColumn = ViewColumn.Active,
  ) {}

  get open(): boolean {
    return this.panel !== undefined;
  }

  get visible(): boolean {
    return this.panel?.visible === true;
  }

  /** Shows the page, in the panel that is open or in a new one. */
  show(title: string, body: Html, options: { focus?: boolean } = {}): void {
    if (!this.panel) {
      this.panel = this.make(title);
      this.panel.webview.html = this.shell(title, body).text;
      return;
    }
    this.update(title, body);
    this.panel.reveal(undefined, options.focus === false);
  }

  /** Another page in the same place, where the panel is open. The reader keeps his place in it. */
  update(title: string, body: Html): void {
    if (this.panel) {
      this.panel.title = title;
      // Kept for when the page is made anew, after it was hidden.
      this.panel.webview.html = this.shell(title, body).text;
    }
  }

  close(): void {
    this.panel?.dispose();
  }

  dispose(): void {
    this.close();
    this.messages.dispose();
    this.closings.dispose();
  }

  private make(title: string): WebviewPanel {
    const panel = window.createWebviewPanel(this.type, title, this.column, {
      enableScripts: true,
      enableFindWidget: true,
      localResourceRoots: [Uri.joinPath(this.extension, "media")],
    });
    panel.iconPath = Uri.joinPath(this.extension, "media", "tab.svg");
    panel.webview.onDidReceiveMessage(message => {
      if (typeof message?.send === "string") {
        this.messages.fire(message);
      }
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.closings.fire();
    });
    return panel;
  }

  private shell(title: string, body: Html): Html {
    const webview = this.panel?.webview;
    const nonce = randomBytes(16).toString("base64");
    const media = (name: string) => webview?.asWebviewUri(Uri.joinPath(this.extension, "media", name)).toString();
    const policy = [
      "default-src 'none'",
      `style-src ${webview?.cspSource}`,
      "img-src data:",
      "media-src data:",
      "form-action 'none'",
      "base-uri 'none'",
      `script-src 'nonce-${nonce}'`,
    ].join("; ");
    return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${media("page.css")}">
<title>${title}</title>
</head>
<body><main>${body}</main><script nonce="${nonce}" src="${media("page.js")}"></script></body>
</html>`;
  }
}
