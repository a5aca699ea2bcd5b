/**
 * The page on which questions are answered, one at a time or a group of them. Only here can something be allowed, because only here the user
 * sees all of it: an answer carries the id of the question it was pressed on, and a page that has just changed ignores
 * presses for a moment.
 */

import * as path from "node:path";
import { CancellationTokenSource, commands, Disposable, EventEmitter, Uri, window } from "vscode";
import { showText, textUri } from "../documents";
import { failureOf, offer, showError } from "../errors";
import { same, type Values } from "../form/entered";
import { type FormRequest, showForm } from "../form/inputs";
import type { Approval, Commands } from "../protocol";
import type { Sidecar } from "../sidecar";
import type { Question } from "../state";
import { fullName, quoted } from "../text";
import { type Message, Panel } from "../web/panel";
import { approvalPage, gonePage, goneText, groupPage } from "./page";

const TITLE = "Approval";

export class ApprovalPanel implements Disposable {
  private readonly panel: Panel;
  /** What is on the page. */
  private shown: Question | undefined;
  /** The server whose trust question the user asked for. It opens when it arrives. */
  private expected: string | undefined;
  /** Questions that were answered on this page. */
  private readonly answered = new Set<string>();
  /** Questions whose large arguments are on the way. */
  private readonly fetching = new Set<string>();
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
    ];
  }

  get visible(): boolean {
    return this.panel.visible;
  }

  /** Shows a question or a group in full: this one, or the oldest. */
  open(id?: string, options?: { focus?: boolean }): void {
    const { state } = this.sidecar;
    const question = id ? state.question(id) : state.questions[0];
    if (!question) {
      const gone = id && (this.endings([id]) || "That question was answered elsewhere or withdrawn");
      window.setStatusBarMessage(`$(check) ${gone || "Nothing is waiting for your answer"}`, 5_000);
      return;
    }
    this.forget();
    this.shown = question;
    this.panel.show(this.page(question), options);
    this.openings.fire();
  }

  /** Shows the question whether to trust a server. The sidecar asks it again if it was answered before. */
  async openTrust(server: string): Promise<void> {
    const question = this.trustQuestion(server);
    if (question) {
      this.open(question.id);
    } else {
      this.expected = server;
      await this.sidecar.command("mcp.server.trust", { server, ask: true });
    }
  }

  /** Sends an answer, after asking for the values that it needs. */
  async resolve(approval: Approval, decision: string, more: { note?: string; arguments?: Values } = {}): Promise<void> {
    const answer = approval.answers.find(one => one.decision === decision);
    const { id, form } = approval;
    let content: unknown;
    if (answer?.grants && form) {
      const check = (values: Values) => this.sidecar.command("mcp.form.check", { approval: id, values });
      const { detail: message, schema } = approval;
      const request = { ...form, check, verb: "Send", message, schema, draft: `approval:${id}` };
      content = form.fields.length > 0 ? await this.fill(approval, request) : {};
      if (!content) {
        return;
      }
    }
    await this.send([id], { id, decision, ...more, ...(content !== undefined && { content }) });
  }

  dispose(): void {
    Disposable.from(...this.disposables).dispose();
  }

  private async send(ids: string[], params: Commands["mcp.approval.resolve"]["params"]): Promise<void> {
    for (const id of ids) {
      this.answered.add(id);
    }
    try {
      const { effect, undo, gone } = await this.sidecar.command("mcp.approval.resolve", params);
      if (effect) {
        void offer(window.showInformationMessage, effect, undo);
      }
      if (gone.length > 0) {
        window.showInformationMessage(this.endings(gone));
      }
    } catch (error) {
      if (failureOf(error).data.kind === "not-found") {
        window.showInformationMessage(this.endings(ids) || "Answered elsewhere or withdrawn");
      } else {
        await showError(error, this.sidecar);
      }
    }
  }

  private forget(): void {
    this.shown = undefined;
    this.answered.clear();
    this.expected = undefined;
    this.notice = undefined;
  }

  private page(question: Question) {
    const { state } = this.sidecar;
    const all = this.others(question);
    const place = all.findIndex(one => one.id === question.id) + 1;
    const position = { place, count: all.length, notice: this.notice, group: state.groupOf(question.id) };
    const members = idsOf(question).flatMap(id => state.approval(id) ?? []);
    for (const member of members) {
      void this.fetch(member);
    }
    const body = "ids" in question ? groupPage(question, members, position) : approvalPage(question, position);
    return { key: question.id, title: TITLE, body };
  }

  /** Fetches the arguments that are too large for the list. The page then shows them. */
  private async fetch({ id, largeArguments }: Approval): Promise<void> {
    if (!largeArguments || this.fetching.has(id)) {
      return;
    }
    this.fetching.add(id);
    try {
      const { approvals } = await this.sidecar.command("mcp.approvals", { id });
      for (const whole of approvals) {
        this.sidecar.state.addFetched(whole);
      }
    } catch (error) {
      // A question that has ended in the meantime is no problem.
      if (this.sidecar.state.approval(id)) {
        await showError(error, this.sidecar);
      }
    } finally {
      this.fetching.delete(id);
    }
  }

  /** What Previous and Next go through. */
  private others(question: Question): readonly Question[] {
    return "ids" in question ? this.sidecar.state.questions : this.sidecar.state.approvals;
  }

  /** How these questions have ended. */
  private endings(ids: readonly string[]): string {
    const closed = this.sidecar.state.closed.filter(one => ids.includes(one.id));
    return closed.map(one => goneText(one.title, one)).join(" ");
  }

  private ended(question: Question): string {
    return this.endings(idsOf(question).filter(id => !this.answered.has(id))) || goneText(question.title);
  }

  /** Lets the user change the arguments of a call before it is allowed. */
  private async edit(approval: Approval, decision: string): Promise<void> {
    const { id, server, tool = "" } = approval;
    const name = fullName({ server, tool });
    const { fields } = await this.sidecar.command("mcp.tool.form", { tool: name });
    const values = await this.fill(approval, {
      // Without defaults: an argument that the call leaves out stays out, unless the user adds it.
      fields: fields.map(({ default: _, ...field }) => field),
      given: approval.arguments ?? {},
      check: entered => this.sidecar.command("mcp.form.check", { tool: name, values: entered }),
      verb: `Allow ${quoted(tool)} once, with these arguments`,
      caution: { label: "Nothing is allowed yet", detail: "Go back to the question", explain: () => {} },
    });
    if (values) {
      await this.resolve(approval, decision, same(values, approval.arguments) ? {} : { arguments: values });
    } else if (this.sidecar.state.approval(id)) {
      this.open(id);
    }
  }

  /** Shows a form for a question, and closes it if the question is no longer asked. */
  private async fill(approval: Approval, form: Omit<FormRequest, "title">): Promise<Values | undefined> {
    const { id, title } = approval;
    const gone = new CancellationTokenSource();
    const { state } = this.sidecar;
    const listening = state.onApprovals(() => state.approval(id) || gone.cancel());
    try {
      const values = await showForm({ title, ...form, token: gone.token });
      if (!gone.token.isCancellationRequested) {
        return values;
      }
      window.showWarningMessage(`${this.ended(approval)} Nothing was sent.`);
      return undefined;
    } finally {
      listening.dispose();
      gone.dispose();
    }
  }

  private async act({ send, id, ids, decision, fields, ticked }: Message): Promise<void> {
    const question = this.sidecar.state.question(String(id));
    if (this.shown && (send === "next" || send === "previous")) {
      const all = this.others(this.shown);
      const place = all.findIndex(one => one.id === this.shown?.id) + (send === "next" ? 1 : -1);
      this.open(all.at(place % all.length)?.id);
    } else if (send === "open") {
      this.open(String(id));
    } else if (send === "close") {
      this.panel.close();
    } else if (question && "ids" in question) {
      // Those that the button was about when it was pressed.
      const meant = ids === undefined ? (ticked as string[]) : String(ids).split(" ");
      await this.send(meant, { ids: meant, decision: String(decision) });
    } else if (question && send === "compare") {
      await compare(question);
    } else if (question && send === "arguments") {
      await showText(`${question.tool}.json`, JSON.stringify(question.arguments, undefined, 2), "json");
    } else if (question) {
      const answer = question.answers.find(one => one.decision === decision);
      const note = (fields as { note?: string } | undefined)?.note?.trim();
      if (answer && send === "edit") {
        await this.edit(question, answer.decision);
      } else if (answer && send === "answer") {
        await this.resolve(question, answer.decision, note && !answer.grants ? { note } : {});
      }
    }
  }

  /** The list of questions has changed: the one on the page may be gone, or another number may be waiting. */
  private follow(): void {
    const { state } = this.sidecar;
    const expected = this.expected ? this.trustQuestion(this.expected) : undefined;
    if (expected) {
      this.expected = undefined;
      this.open(expected.id);
      return;
    }
    if (!this.shown) {
      return;
    }
    const before = this.shown;
    const elsewhere = idsOf(before).filter(id => !state.approval(id) && !this.answered.has(id));
    const now = state.question(before.id);
    if (now) {
      this.shown = now;
      this.notice = this.endings(elsewhere) || this.notice;
      this.panel.update(this.page(now));
      return;
    }
    const [next] = state.questions;
    if (next) {
      this.shown = next;
      this.notice = `This is a different question. ${elsewhere.length > 0 ? this.ended(before) : "The previous one was answered."}`;
      this.panel.update(this.page(next));
    } else if (elsewhere.length === 0) {
      this.panel.close();
    } else {
      this.forget();
      this.panel.update({ key: `gone:${before.id}`, title: TITLE, body: gonePage(this.ended(before)) });
    }
  }

  private trustQuestion(server: string): Approval | undefined {
    return this.sidecar.state.approvals.find(one => one.kind === "trust" && one.server === server);
  }
}

/** Shows the current file next to the file after the call. */
async function compare({ change }: Approval): Promise<void> {
  if (change) {
    const name = path.basename(change.path);
    const left = change.isNew ? textUri(name, "") : Uri.file(change.file);
    await commands.executeCommand("vscode.diff", left, textUri(name, change.after), `${name}: after the call`);
  }
}

function idsOf(question: Question): readonly string[] {
  return "ids" in question ? question.ids : [question.id];
}
