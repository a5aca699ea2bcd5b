/**
 * Notifies the user that questions are waiting, with one notification for all of them. It only offers to review them, because
 * it does not show what it would allow. VS Code hides it after a while; the questions stay in their view.
 */

import { commands, Disposable, window } from "vscode";
import { setting } from "../settings";
import type { Sidecar } from "../sidecar";
import type { Question, WorkspaceState } from "../state";
import { plural } from "../text";
import type { ApprovalPanel } from "./panel";

/** Questions that arrive within this time are announced together. */
const GATHER_MS = 150;
/** VS Code hides a notification after about 12 seconds. */
const TOAST_MS = 15_000;
const REVIEW = "Review…";

export class Attention implements Disposable {
  private timer: NodeJS.Timeout | undefined;
  private announcedAt = 0;
  /** Servers whose next question another message leads to. */
  private readonly expected = new Set<string>();
  private readonly listeners: Disposable[];

  constructor(
    sidecar: Sidecar,
    private readonly panel: ApprovalPanel,
  ) {
    this.listeners = [
      panel.onOpen(() => this.hide()),
      sidecar.state.onApprovals(before => {
        const { approvals } = sidecar.state;
        if (approvals.length === 0) {
          this.hide();
        } else if (approvals.some(approval => before.every(old => old.id !== approval.id))) {
          this.timer ??= setTimeout(() => this.announce(sidecar.state), GATHER_MS);
        }
      }),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    Disposable.from(...this.listeners).dispose();
  }

  /** Another message leads to the next question about this server: this one would be the second. */
  expect(server: string): void {
    this.expected.add(server);
  }

  forget(server: string): void {
    this.expected.delete(server);
  }

  /** VS Code cannot take a notification back, but one that is out of date need not stay in the way. */
  private hide(): void {
    if (Date.now() - this.announcedAt < TOAST_MS) {
      commands.executeCommand("notifications.hideToasts").then(undefined, () => {});
    }
    this.announcedAt = 0;
  }

  private isExpected(question: Question): boolean {
    return "server" in question && question.kind === "trust" && this.expected.delete(question.server);
  }

  private async announce({ approvals, questions }: WorkspaceState): Promise<void> {
    this.timer = undefined;
    const mode = setting("approvals.attention");
    const [oldest, ...others] = questions.filter(question => !this.isExpected(question));
    if (!oldest || mode === "none" || this.panel.visible) {
      return;
    }
    if (mode === "page") {
      // The user may be typing: the page must not get keys that were meant for the editor.
      this.panel.open(oldest.id, { focus: false });
      return;
    }
    this.hide();
    this.announcedAt = Date.now();
    const text =
      others.length === 0 ? oldest.title : `${plural(approvals.length, "question")} are waiting for your answer`;
    if ((await window.showWarningMessage(text, REVIEW)) === REVIEW) {
      this.panel.open(others.length === 0 ? oldest.id : undefined);
    }
  }
}
