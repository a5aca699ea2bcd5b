/**
 * Where questions are answered. They wait in their view and behind the status bar item; a notification only calls
 * attention, and what it says goes away without being an answer.
 */

import * as path from "node:path";
import { commands, type Disposable, Uri, window, workspace } from "vscode";
import { textUri } from "../documents";
import { fill } from "../form/ask";
import type { Approval } from "../protocol";
import { complain, failure } from "../say";
import type { Sidecar } from "../sidecar";
import { Panel } from "../web/panel";
import { approvalPage } from "./page";
import { answer } from "./words";

/** VS Code shows a notification for so long at most, before it goes behind the bell. */
const SEEN_MS = 15_000;

export class Desk implements Disposable {
  private readonly panel: Panel;
  /** The question on the page. */
  private shown: string | undefined;
  /** When a notification last called for attention. */
  private called = 0;
  private readonly disposables: Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    extension: Uri,
  ) {
    this.panel = new Panel(extension, "mcpSidecar.approval");
    this.disposables = [
      this.panel,
      this.panel.onMessage(message => this.act(message)),
      this.panel.onClose(() => {
        this.shown = undefined;
      }),
      sidecar.picture.onApprovals(before => this.follow(before)),
    ];
  }

  /** Shows a question in full: this one, or the oldest. */
  open(id?: string): void {
    const approval = id ? this.sidecar.picture.approval(id) : this.sidecar.picture.approvals[0];
    if (!approval) {
      window.setStatusBarMessage("$(check) nothing waits for an answer", 3_000);
      return;
    }
    this.shown = approval.id;
    this.panel.show("Approval", this.page(approval));
    this.hideNotifications();
  }

  /** The question about a server's definition, when one waits. */
  trustQuestion(server: string): Approval | undefined {
    return this.sidecar.picture.approvals.find(approval => approval.kind === "trust" && approval.server === server);
  }

  /** Sends an answer, after asking for what it takes. */
  async resolve(approval: Approval, decision: string, note?: string): Promise<void> {
    let content: unknown;
    if (decision === "accept" && approval.schema) {
      content = await fill({ title: approval.title, schema: approval.schema, verb: "Send" });
      if (!content) {
        return;
      }
    }
    try {
      const params = { id: approval.id, decision, ...(note && { note }), ...(content !== undefined && { content }) };
      await this.sidecar.command("mcp.approval.resolve", params);
    } catch (error) {
      if (failure(error).data.kind === "not-found") {
        window.setStatusBarMessage("$(info) answered elsewhere, or no longer asked", 5_000);
      } else {
        await complain(error, this.sidecar);
      }
    }
  }

  dispose(): void {
    for (const disposable of this.disposables) {
      disposable.dispose();
    }
  }

  private page(approval: Approval) {
    return approvalPage(approval, this.sidecar.picture.approvals.length - 1);
  }

  private async act({ send, id, decision, fields }: Record<string, unknown>): Promise<void> {
    const approval = this.sidecar.picture.approval(String(id ?? this.shown));
    if (send === "next") {
      const all = this.sidecar.picture.approvals;
      const place = all.findIndex(one => one.id === this.shown);
      this.open(all[(place + 1) % all.length]?.id);
    } else if (send === "compare" && approval) {
      await compare(approval).catch(error => complain(error, this.sidecar));
    } else if (send === "answer" && approval && approval.options.includes(String(decision))) {
      const note = (fields as { note?: string } | undefined)?.note?.trim();
      await this.resolve(approval, String(decision), decision === "deny" ? note : undefined);
    }
  }

  /** The list is another one: what is shown may be answered, what is new may need attention. */
  private follow(before: readonly Approval[]): void {
    const { approvals } = this.sidecar.picture;
    if (this.shown) {
      const still = this.sidecar.picture.approval(this.shown);
      const next = still ?? approvals[0];
      this.shown = next?.id;
      if (next) {
        this.panel.update("Approval", this.page(next));
      } else {
        this.panel.close();
      }
    }
    if (approvals.length === 0) {
      this.hideNotifications();
    }
    const fresh = approvals.filter(approval => before.every(old => old.id !== approval.id));
    if (fresh.length > 0) {
      void this.callAttention(fresh);
    }
  }

  /** VS Code lets nobody take a notification back; but what has been answered need not stand in the way. */
  private hideNotifications(): void {
    if (Date.now() - this.called < SEEN_MS) {
      commands.executeCommand("notifications.hideToasts").then(undefined, () => {});
    }
  }

  private async callAttention(fresh: readonly Approval[]): Promise<void> {
    const manner = workspace.getConfiguration("mcpSidecar").get<string>("approvals.attention");
    const [only, ...others] = fresh;
    if (!only || manner === "none" || this.panel.visible) {
      return;
    }
    if (manner === "page") {
      this.open(only.id);
      return;
    }
    const text = others.length > 0 ? `${fresh.length} questions wait for you: ${only.title}, …` : only.title;
    const quick = others.length === 0 && only.kind !== "tool" && only.kind !== "trust";
    const [first, second] = [quick ? answer(only, "accept") : "Review…", others.length === 0 ? "Deny" : undefined];
    const buttons = quick ? [first, "Review…"] : second ? [first, second] : [first];
    this.called = Date.now();
    const chosen = await window.showWarningMessage(text, ...buttons);
    if (chosen === "Deny") {
      await this.resolve(only, "deny");
    } else if (quick && chosen === first) {
      await this.resolve(only, "accept");
    } else if (chosen) {
      this.open(only.id);
    }
  }
}

/** The file as it is beside the file as it would be. */
async function compare({ change }: Approval): Promise<void> {
  if (change) {
    const name = path.basename(change.path);
    const left = change.isNew ? textUri(name, "") : Uri.file(change.file);
    await commands.executeCommand("vscode.diff", left, textUri(name, change.after), `${name}: after the call`);
  }
}
