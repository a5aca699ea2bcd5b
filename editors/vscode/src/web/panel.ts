/**
 * A webview that shows one page at a time: scripts only from this package, nothing from the network, colours of the theme.
 *
 * The HTML of the webview is a frame that never changes. The page itself is sent as a message and `media/page.js` puts it
 * in, so an update keeps what the user has typed and where the focus is; a webview whose HTML is replaced loses both.
 */

import { randomBytes } from "node:crypto";
import { type Disposable, EventEmitter, Uri, ViewColumn, type WebviewPanel, window } from "vscode";
import { setFocus } from "../focus";
import { type Html, html } from "./html";

export interface Message {
  /** What was pressed: its `data-send`. */
  send: string;
  [key: string]: unknown;
}

export interface Page {
  /** What the page is about. A page with another key is another page: it ignores presses for a moment. */
  key: string;
  title: string;
  body: Html;
}

export class Panel implements Disposable {
  private panel: WebviewPanel | undefined;
  private page: Page | undefined;
  /** The page should take the keyboard focus once, when it is drawn. */
  private focus = false;
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
  show(page: Page, { focus = true }: { focus?: boolean } = {}): void {
    this.page = page;
    this.focus = focus;
    if (!this.panel) {
      this.panel = this.create(page.title, !focus);
      return;
    }
    const { visible } = this.panel;
    this.panel.reveal(undefined, !focus);
    // A new webview, or one that was hidden, asks for its page once it is loaded.
    if (visible) {
      this.send();
    }
  }

  /** Replaces the page if the panel is open. */
  update(page: Page): void {
    if (this.panel) {
      this.page = page;
      if (this.panel.visible) {
        this.send();
      }
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

  private send(): void {
    if (this.panel && this.page) {
      const { key, title, body } = this.page;
      this.panel.title = title;
      void this.panel.webview.postMessage({ key, html: body.text, focus: this.focus });
      // Only once: the user may have moved on, for instance to the palette.
      this.focus = false;
    }
  }

  private create(title: string, preserveFocus: boolean): WebviewPanel {
    // In the same column it would cover the editor in which the user is typing.
    const place = { viewColumn: preserveFocus ? ViewColumn.Beside : this.column, preserveFocus };
    const panel = window.createWebviewPanel(this.type, title, place, {
      enableScripts: true,
      enableFindWidget: true,
      localResourceRoots: [Uri.joinPath(this.extension, "media")],
    });
    panel.iconPath = Uri.joinPath(this.extension, "media", "tab.svg");
    panel.webview.onDidReceiveMessage(message => {
      if (message?.send === "ready") {
        this.send();
      } else if (message?.send === "focus" || message?.send === "blur") {
        setFocus(this, message.send === "focus");
      } else if (typeof message?.send === "string") {
        this.messages.fire(message);
      }
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.page = undefined;
      setFocus(this, false);
      this.closings.fire();
    });
    panel.webview.html = this.frame(panel).text;
    return panel;
  }

  private frame({ webview }: WebviewPanel): Html {
    const nonce = randomBytes(16).toString("base64");
    const media = (name: string) => webview.asWebviewUri(Uri.joinPath(this.extension, "media", name)).toString();
    const policy = [
      "default-src 'none'",
      `style-src ${webview.cspSource}`,
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
<title>MCP Sidecar</title>
</head>
<body><main></main><script nonce="${nonce}" src="${media("page.js")}"></script></body>
</html>`;
  }
}
