/** Questions in words: what is asked, by whom, and which answers it takes. Pure. */

import { fenced, plain } from "../markdown";
import type { Annotations, Approval } from "../protocol";
import type { Row } from "../views/row";

export const ANSWERS: Record<string, string> = {
  "allow-once": "Allow once",
  "allow-session": "Allow for this session",
  "allow-project": "Allow for this project",
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

/** What a button says. */
export function answer(approval: Approval, decision: string): string {
  if (approval.kind === "trust" && TRUST[decision]) {
    return TRUST[decision];
  }
  if (decision === "accept" && approval.schema) {
    return "Fill in…";
  }
  return ANSWERS[decision] ?? decision;
}

/** The answer that a plain yes means. */
export function yes(approval: Approval): string | undefined {
  const order = approval.kind === "trust" ? ["allow-always", "allow-project"] : ["allow-once", "accept"];
  return [...order, "allow-once", "allow-session"].find(option => approval.options.includes(option));
}

/** The answer that a plain no means. */
export function no(approval: Approval): string | undefined {
  return ["deny", "decline", "cancel"].find(option => approval.options.includes(option));
}

export function who({ requester }: Approval): string {
  if (requester.kind === "user") {
    return "you";
  }
  return `${requester.kind === "agent" ? "the agent" : "the plugin"} ${requester.name || "without a name"}`;
}

/** What a tool says of itself, as chips: text, and whether it is good or bad news. */
export function traits(annotations: Annotations | undefined): [text: string, mood: string][] {
  const found: [string, string][] = [];
  if (annotations?.readOnly) {
    found.push(["reads only", "good"]);
  } else if (annotations?.destructive) {
    found.push(["may destroy", "bad"]);
  } else {
    found.push(["does not say whether it writes", "warn"]);
  }
  if (annotations?.openWorld) {
    found.push(["reaches the outside world", "warn"]);
  }
  if (annotations?.idempotent) {
    found.push(["twice is as once", ""]);
  }
  return found;
}

const ICONS = { tool: "tools", trust: "shield", elicitation: "comment-discussion", input: "key" };

export function approvalRow(approval: Approval): Row {
  const given = approval.arguments ? JSON.stringify(approval.arguments) : "";
  const tooltip = [`**${plain(approval.title)}**`, plain(approval.detail)];
  if (approval.arguments) {
    tooltip.push(fenced(JSON.stringify(approval.arguments, undefined, 2), "json"));
  }
  if (approval.diff) {
    tooltip.push(fenced(approval.diff, "diff"));
  }
  const flags = approval.options.map(option => option.replaceAll("-", ""));
  return {
    id: `approval:${approval.id}`,
    label: approval.title,
    description: given || (approval.diff ? "changed" : ""),
    tooltip: tooltip.join("\n\n"),
    icon: ICONS[approval.kind],
    color: "list.warningForeground",
    context: ["approval", approval.kind, ...flags].join("."),
    click: "mcpSidecar.approval.open",
  };
}
