/** Questions in words: who asks, which answers there are, and the row in the Approvals view. Pure. */

import { fenced, plain } from "../markdown";
import type { Annotations, Approval } from "../protocol";
import { quoted } from "../text";
import type { Row } from "../views/row";

const ANSWERS: Record<string, string> = {
  "allow-once": "Allow once",
  "allow-session": "Allow for this session",
  "allow-project": "Allow in this project",
  "allow-always": "Always allow",
  deny: "Deny",
  disable: "Disable this tool",
  accept: "Accept",
  decline: "Decline",
  cancel: "Cancel",
};

const TRUST: Record<string, string> = {
  "allow-always": "Trust",
  "allow-project": "Trust",
  "allow-session": "Trust for this session",
  "allow-once": "Trust once",
  deny: "Do not trust",
};

/** The label of an answer. */
export function answerLabel(approval: Approval, decision: string): string {
  if (approval.kind === "trust" && TRUST[decision]) {
    return TRUST[decision];
  }
  if (decision === "accept" && hasForm(approval)) {
    return "Fill in…";
  }
  return ANSWERS[decision] ?? decision;
}

/** Whether accepting takes values, and not only a yes. */
export function hasForm({ schema }: Approval): boolean {
  return Object.keys(schema?.properties ?? {}).length > 0;
}

/** The answer that a plain yes means. It does not outlast this question, except for trust, which has no such answer. */
export function yes(approval: Approval): string | undefined {
  const order = approval.kind === "trust" ? ["allow-always", "allow-project"] : ["allow-once", "accept"];
  return order.find(option => approval.options.includes(option));
}

/** The answer that a plain no means. */
export function no(approval: Approval): string | undefined {
  return ["deny", "decline", "cancel"].find(option => approval.options.includes(option));
}

/** What an answer changes for later calls, as a sentence. Empty if it changes nothing. */
export function lastingEffect({ kind, server, tool }: Approval, decision: string): string {
  if (kind === "trust") {
    const trust: Record<string, string> = {
      "allow-always": "is trusted until its definition changes",
      "allow-project": "is trusted in this project until its definition changes",
      "allow-session": "is trusted for this session",
      deny: "is not trusted and does not start",
    };
    return trust[decision] ? `The server ${quoted(server)} ${trust[decision]}.` : "";
  }
  const effects: Record<string, string> = {
    "allow-session": "is allowed for this session",
    "allow-project": "is allowed in this project",
    "allow-always": "is always allowed",
    disable: "is disabled in this project",
  };
  return kind === "tool" && effects[decision]
    ? `${quoted(tool ?? "")} of ${quoted(server)} ${effects[decision]}. You can take this back in the Grants view.`
    : "";
}

/** What a tool declares about itself, as chips: text, and whether it is good or bad news. */
export function traits(annotations: Annotations | undefined): [text: string, mood: string][] {
  const found: [string, string][] = [];
  if (annotations?.readOnly) {
    found.push(["read-only", "good"]);
  } else if (annotations?.destructive) {
    found.push(["may delete or overwrite", "bad"]);
  } else {
    found.push(["may write", "warn"]);
  }
  if (annotations?.openWorld) {
    found.push(["reaches outside systems", "warn"]);
  }
  if (annotations?.idempotent) {
    found.push(["idempotent", ""]);
  }
  return found;
}

const ICONS = { tool: "tools", trust: "shield", elicitation: "comment-discussion", input: "key" };

export function approvalRow(approval: Approval): Row {
  const { tool, server, requester } = approval;
  // A title is longer than the view is wide. What differs between two rows comes first.
  const given = Object.keys(approval.arguments ?? {}).length > 0 ? JSON.stringify(approval.arguments) : "";
  const about = tool ? [server, requester.name, given] : [approval.diff && "changed"];
  const tooltip = [`**${plain(approval.title)}**`, plain(approval.detail)];
  if (approval.arguments) {
    tooltip.push(fenced(JSON.stringify(approval.arguments, undefined, 2), "json"));
  }
  if (approval.diff) {
    tooltip.push(fenced(approval.diff, "diff"));
  }
  return {
    id: `approval:${approval.id}`,
    label: tool ?? approval.title,
    description: about.filter(Boolean).join(" · "),
    tooltip: tooltip.join("\n\n"),
    icon: ICONS[approval.kind],
    color: "list.warningForeground",
    contextValue: ["approval", approval.kind, ...approval.options].join("."),
    command: "mcpSidecar.approval.open",
  };
}
