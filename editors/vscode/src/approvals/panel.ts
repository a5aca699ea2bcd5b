/**
 * The page on which questions are answered, one at a time. Only here can something be allowed, because only here the user
 * sees all of it: an answer carries the id of the question it was pressed on, and a page that has just changed ignores
 * presses for a moment.
 */

import * as path from "node:path";
import { commands, type Disposable, EventEmitter, Uri, window } from "vscode";
import { textUri } from "../documents";
import { failureOf, showError } from "../errors";
import { showForm } from "../form/inputs";
import type { Approval, ServerStatus } from "../protocol";
import type { Sidecar } from "../sidecar";
import { type Message, Panel } from "../web/panel";
import { hasForm, lastingEffect } from "./labels";
import { approvalPage, gonePage, trustPage } from "./page";

const TITLE = "Approval";

export class ApprovalPanel implements Disposable {
  private readonly panel: Panel;
  /** The question on the page. */
  private shown: Approval | undefined;
  /** The server on the page, if the page offers to trust it without a question. */
  private server: string | undefined;
  /** The question that was answered last on this page. */
  private answered: string | undefined;
  private notice: string | undefined;
  private readonly openings = new EventEmitter<void>();
  /** The user is looking at a question now. */
  readonly onOpen = this.openings.event;
  private readonly disposables: Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    extension: Uri,
  ) {
    this.panel = new Panel(extension, "mcpSidecar.approval");
    this.disposables = [
      this.panel,
      this.openings,
      this.panel.onMessage(message => this.act(message).catch(error => showError(error, sidecar))),
      this.panel.onClose(() => this.forget()),
      sidecar.state.onApprovals(() => this.follow()),
      sidecar.state.onServers(() => this.followServer()),
    ];
  }

  get visible(): boolean {
    return this.panel.visible;
  }

  /** Shows a question in full: this one, or the oldest. */
  open(id?: string, options?: { focus?: boolean }): void {
    const approval = id ? this.sidecar.state.approval(id) : this.sidecar.state.approvals[0];
    if (!approval) {
      const gone = "That question was answered elsewhere, or it is no longer asked";
      window.setStatusBarMessage(`$(check) ${id ? gone : "Nothing is waiting for your answer"}`, 5_000);
      return;
    }
    this.forget();
    this.shown = approval;
    this.panel.show(this.page(approval), options);
    this.openings.fire();
  }

  /** Shows the definition of a server that needs trust: its question, or the definition alone if nothing is asked. */
  openTrust(server: ServerStatus): void {
    const isAsked = (one: Approval) => one.kind === "trust" && one.server === server.name;
    const question = this.sidecar.state.approvals.find(isAsked);
    if (question) {
      this.open(question.id);
    } else {
      this.forget();
      this.server = server.name;
      this.panel.show(definitionPage(server));
    }
  }

  /** Sends an answer, after asking for the values that it needs. */
  async resolve(approval: Approval, decision: string, note?: string): Promise<void> {
    let content: unknown;
    if (decision === "accept" && approval.schema) {
      const form = { title: approval.title, schema: approval.schema, verb: "Send" };
      content = hasForm(approval) ? await showForm(form) : {};
      if (!content) {
        return;
      }
    }
    this.answered = approval.id;
    try {
      const params = { id: approval.id, decision, ...(note && { note }), ...(content !== undefined && { content }) };
      await this.sidecar.command("mcp.approval.resolve", params);
      void confirmLasting(approval, decision);
    } catch (error) {
      if (failureOf(error).data.kind === "not-found") {
        window.setStatusBarMessage("$(info) Answered elsewhere, or no longer asked", 5_000);
      } else {
        await showError(error, this.sidecar);
      }
    }
  }

  dispose(): void {
    for (const disposable of this.disposables) {
      disposable.dispose();
    }
  }

  private forget(): void {
    this.shown = undefined;
    this.server = undefined;
    this.notice = undefined;
  }

  private page(approval: Approval) {
    const { approvals } = this.sidecar.state;
    const place = approvals.findIndex(one => one.id === approval.id) + 1;
    const body = approvalPage(approval, { place, count: approvals.length, notice: this.notice });
    return { key: approval.id, title: TITLE, body };
  }

  private async act({ send, id, server, definition, decision, fields }: Message): Promise<void> {
    const approval = this.sidecar.state.approval(String(id));
    if (send === "next" || send === "previous") {
      const all = this.sidecar.state.approvals;
      const place = all.findIndex(one => one.id === this.shown?.id) + (send === "next" ? 1 : -1);
      this.open(all.at(place % all.length)?.id);
    } else if (send === "compare" && this.shown) {
      await compare(this.shown);
    } else if (send === "close") {
      this.panel.close();
    } else if (send === "answer" && typeof server === "string") {
      // Trust is for the definition on the page. If it has changed since, the page is about to show the new one.
      if (definition === JSON.stringify(this.sidecar.state.server(server)?.config)) {
        await this.sidecar.command("mcp.server.trust", { server, trusted: true });
      }
    } else if (send === "answer" && approval?.options.includes(String(decision))) {
      const note = (fields as { note?: string } | undefined)?.note?.trim();
      await this.resolve(approval, String(decision), decision === "deny" ? note : undefined);
    }
  }

  /** The list of questions has changed: the one on the page may be gone, or another number may be waiting. */
  private follow(): void {
    const { approvals } = this.sidecar.state;
    if (!this.shown) {
      return;
    }
    const gone = this.shown;
    if (this.sidecar.state.approval(gone.id)) {
      this.panel.update(this.page(gone));
      return;
    }
    const byUser = gone.id === this.answered;
    const next = approvals[0];
    if (next) {
      this.shown = next;
      this.notice = byUser
        ? "This is another question. The one before is answered."
        : `This is another question. “${gone.title}” was answered elsewhere, or it is no longer asked.`;
      this.panel.update(this.page(next));
    } else if (byUser) {
      this.panel.close();
    } else {
      this.forget();
      this.panel.update({ key: `gone:${gone.id}`, title: TITLE, body: gonePage(gone.title) });
    }
  }

  private followServer(): void {
    const server = this.server ? this.sidecar.state.server(this.server) : undefined;
    if (server?.needsTrust) {
      this.panel.update(definitionPage(server));
    } else if (this.server) {
      this.panel.close();
    }
  }
}

/** With the definition in its key: once it changes, the page is another one and ignores presses for a moment. */
function definitionPage(server: ServerStatus) {
  const key = `server:${server.name}:${JSON.stringify(server.config)}`;
  return { key, title: TITLE, body: trustPage(server) };
}

/** An answer that counts for later calls is confirmed, together with the way to take it back. */
async function confirmLasting(approval: Approval, decision: string): Promise<void> {
  const effect = lastingEffect(approval, decision);
  if (!effect) {
    return;
  }
  const { server } = approval;
  const trusted = approval.kind === "trust" && decision !== "deny";
  const [button, command] =
    approval.kind === "tool"
      ? ["Show Grants", "mcpSidecar.grants.focus"]
      : trusted
        ? ["Withdraw Trust", "mcpSidecar.server.distrust"]
        : ["Review Again…", "mcpSidecar.server.trust"];
  if ((await window.showInformationMessage(effect, button)) === button) {
    await commands.executeCommand(command, { server });
  }
}

/** Shows the file as it is beside the file as it would be. */
async function compare({ change }: Approval): Promise<void> {
  if (change) {
    const name = path.basename(change.path);
    const left = change.isNew ? textUri(name, "") : Uri.file(change.file);
    await commands.executeCommand("vscode.diff", left, textUri(name, change.after), `${name}: after the call`);
  }
}
