/** The text of questions: their plain answers, what a tool declares, and the row in the Approvals view. Pure. */

import { fenced, plain } from "../markdown";
import type { Annotations, Approval, ApprovalAnswer } from "../protocol";
import type { Row } from "../views/row";

/** The plain yes and the plain no. They do not outlast this question, unless no such answer exists. */
export function plainAnswers({ answers }: Approval): { yes?: ApprovalAnswer; no?: ApprovalAnswer } {
  const plainOne = (grants: boolean) => {
    const fitting = answers.filter(answer => answer.grants === grants);
    return fitting.find(answer => !answer.lasts) ?? fitting[0];
  };
  const [yes, no] = [plainOne(true), plainOne(false)];
  return { ...(yes && { yes }), ...(no && { no }) };
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
    found.push(["accesses external systems", "warn"]);
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
    label: tool ?? (approval.agentTool ? approval.summary : approval.title),
    spoken: `${approval.title}${given && `, with ${given}`}`,
    description: about.filter(Boolean).join(" · "),
    tooltip: tooltip.join("\n\n"),
    icon: ICONS[approval.kind],
    color: "list.warningForeground",
    contextValue: ["approval", approval.kind, ...approval.answers.map(answer => answer.decision)].join("."),
    command: "mcpSidecar.approval.open",
  };
}
