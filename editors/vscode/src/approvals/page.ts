/** A question as a page: everything that matters for the answer, and a button for each answer. Pure. */

import { clock } from "../clock";
import { fieldList } from "../form/page";
import type { Approval, ApprovalAnswer, ApprovalGroup, ClosedApproval } from "../protocol";
import { withoutHidden } from "../text";
import { diff, type Html, html } from "../web/html";
import { plainAnswers, traits } from "./labels";

const DAY_MS = 24 * 3_600_000;
/** How many characters of one argument are on the page. */
const MOST_CHARACTERS = 256 * 1024;

export interface Position {
  /** From 1. */
  place: number;
  count: number;
  /** Why this question is on the page although the user did not ask for it. */
  notice?: string | undefined;
  /** The group that the question belongs to. */
  group?: ApprovalGroup | undefined;
}

export function approvalPage(approval: Approval, position: Position): Html {
  return html`${head(position)}
<h1 tabindex="-1">${approval.title}</h1>
<p class="soft">${subtitle(approval)}</p>
${answers(approval)}
${details(approval)}`;
}

/** All questions of a group in full. Nothing is selected at first, and nothing is granted by a key. */
export function groupPage(group: ApprovalGroup, members: readonly Approval[], position: Position): Html {
  const ids = members.map(one => one.id).join(" ");
  const all = ({ decision, label }: ApprovalAnswer) =>
    html`<button data-send="answer" data-id="${group.id}" data-ids="${ids}" data-decision="${decision}">${label}</button>`;
  const yes = group.answers.find(answer => answer.grants);
  const some = (answer: ApprovalAnswer) =>
    html`<button class="${answer === yes && "main"}" data-send="answer" data-id="${group.id}" data-decision="${answer.decision}"
data-count="ticked">${answer.selectedLabel} (<span class="count">0</span>)</button>`;
  const member = (one: Approval) => html`<section><h2 class="pick"><label><input type="checkbox" data-item="${one.id}">
${one.tool && html`<code>${withoutHidden(one.tool)}</code> on `}<code>${one.server}</code></label>
<button class="link" data-send="open" data-id="${one.id}">Answer only this…</button></h2>
${details(one)}</section>`;
  return html`${head(position)}
<h1 tabindex="-1">${group.title}</h1>
<div class="bar"><div class="actions">${group.answers.map(some)}</div>
<div class="actions">${group.answers.map(all)}</div></div>
${members.map(member)}`;
}

/** What a question is about. */
function details(approval: Approval): Html {
  const { kind, detail, url, arguments: values, form } = approval;
  return html`${kind === "tool" && chips(approval)}
${detail && (kind === "trust" ? definition(detail) : html`<p class="text">${detail}</p>`)}
${url && html`<h2>Opens</h2><pre class="bad">${withoutHidden(url)}</pre>`}
${file(approval)}
${values && given(approval.id, values)}
${approval.diff && html`<h2>What changed</h2>${diff(withoutHidden(approval.diff))}`}
${form?.fields.length && html`<h2>Requested values</h2>${fieldList(form.fields)}`}`;
}

/** How a question has ended. */
export function goneText(title: string, closed?: Pick<ClosedApproval, "outcome" | "message">): string {
  if (!closed) {
    return `“${title}” was answered elsewhere or withdrawn.`;
  }
  return `“${title}” ${closed.outcome === "answered" ? "was answered" : "is no longer asked"}: ${closed.message}.`;
}

/** After a question has gone without an answer from this page, and no other one waits. */
export function gonePage(text: string): Html {
  return html`<h1 tabindex="-1">Nothing is waiting for your answer</h1>
<p>${text}</p>
<div class="actions"><button data-send="close">Close</button></div>`;
}

function head({ place, count, notice, group }: Position): Html {
  const several = html`Question ${place} of ${count}
<button class="link" data-send="previous">Previous</button> <button class="link" data-send="next">Next</button>
${group && html`<button class="link" data-send="open" data-id="${group.id}">Answer ${group.ids.length} together…</button>`}`;
  return html`<p class="place">${count > 1 && several}</p>
<p class="notice" role="status">${notice}</p>`;
}

function subtitle(approval: Approval): Html {
  const { server, tool, agentTool, resource, prompt, requester } = approval;
  const about =
    (tool && html` · tool <code>${withoutHidden(tool)}</code>`) ||
    (resource && html` · resource <code>${withoutHidden(resource.uri)}</code>`) ||
    (prompt && html` · prompt <code>${withoutHidden(prompt)}</code>`);
  const asked =
    requester.kind !== "user" && html` · asked by the ${requester.kind} <code>${requester.name || "unnamed"}</code>`;
  // A question that may wait for days needs no deadline.
  const brief = Date.parse(approval.expiresAt) - Date.parse(approval.createdAt) < DAY_MS;
  const whose = agentTool
    ? html`Own tool <code>${withoutHidden(agentTool)}</code> of the agent <code>${server}</code>`
    : html`Server <code>${server}</code>${about}${approval.kind !== "trust" && asked}`;
  return html`${whose}${brief && ` · until ${clock(approval.expiresAt)}`}`;
}

/** The sidecar writes a definition as lines of a word, in a column of nine, and a value. */
function definition(detail: string): Html {
  const line = (text: string) => {
    const [word, value] = [text.slice(0, 9).trim(), text.slice(10)];
    if (!value || text[9] !== " ") {
      return html`<dt></dt><dd class="soft">${text}</dd>`;
    }
    const mood = word === "warning" ? "bad" : word === "allows" ? "warn" : "";
    return html`<dt>${word}</dt><dd><pre class="${mood}">${withoutHidden(value)}</pre></dd>`;
  };
  return html`<h2>Definition</h2><dl>${detail.split("\n").map(line)}</dl>`;
}

function chips(approval: Approval): Html {
  return html`<div class="chips">${traits(approval.annotations).map(
    ([text, mood]) => html`<span class="chip ${mood}">${text}</span>`,
  )}</div>`;
}

function given(id: string, values: Record<string, unknown>): Html {
  const names = Object.keys(values);
  if (names.length === 0) {
    return html`<h2>Arguments</h2><p class="soft">none</p>`;
  }
  const value = (name: string) => {
    const one = values[name];
    const text = typeof one === "string" ? one : JSON.stringify(one, undefined, 2);
    const more = text.length - MOST_CHARACTERS;
    return html`<pre tabindex="0">${withoutHidden(text.slice(0, MOST_CHARACTERS))}</pre>${
      more > 0 &&
      html`<p class="warn">${more} more characters.
<button class="link" data-send="arguments" data-id="${id}">Open all arguments…</button></p>`
    }`;
  };
  return html`<h2>Arguments</h2><dl class="arguments">${names.map(
    name => html`<dt>${withoutHidden(name)}</dt><dd>${value(name)}</dd>`,
  )}</dl>`;
}

function file({ id, change }: Approval): Html | false {
  return (
    change !== undefined &&
    html`<h2>Would ${change.isNew ? "create" : "change"} <code>${change.path}</code></h2>
${change.unsaved && html`<p class="warn">This file has unsaved changes in an editor. The diff is against the unsaved text.</p>`}
${diff(withoutHidden(change.diff))}
<div class="actions"><button data-send="compare" data-id="${id}">Compare with the file…</button></div>`
  );
}

/** What a button sends that answers a question, perhaps after a form. */
function sends(send: "answer" | "edit", { id }: Approval, { decision }: ApprovalAnswer): Html {
  return html`data-send="${send}" data-id="${id}" data-decision="${decision}"`;
}

/** Two plain answers for this question, and below them, smaller, those that also count for later calls. */
function answers(approval: Approval): Html {
  const { yes, no } = plainAnswers(approval);
  const label = (answer: ApprovalAnswer) =>
    `${answer.label}${answer.grants && approval.form?.fields.length ? "…" : ""}`;
  const others = approval.answers.filter(answer => answer !== yes && answer !== no);
  const lasting = others.map(
    answer => html`<button class="link" ${sends("answer", approval, answer)}>${label(answer)}</button>`,
  );
  const edit =
    yes &&
    approval.tool &&
    Object.keys(approval.arguments ?? {}).length > 0 &&
    html`<button class="link" ${sends("edit", approval, yes)}>Edit arguments, then allow…</button>`;
  const note =
    no &&
    approval.kind === "tool" &&
    html`<input type="text" name="note" data-enter="no" size="34" placeholder="Why not? The agent sees this. Press Enter to deny."
aria-label="Why not? The agent sees this. Press Enter to deny.">`;
  return html`<div class="bar"><div class="actions">
${yes && html`<button class="main" data-key="yes" aria-keyshortcuts="Control+Enter" ${sends("answer", approval, yes)}>${label(yes)} <kbd aria-hidden="true">Ctrl+Enter</kbd></button>`}
${no && html`<button data-key="no" aria-keyshortcuts="Control+Delete" ${sends("answer", approval, no)}>${label(no)} <kbd aria-hidden="true">Ctrl+Delete</kbd></button>`}
${note}</div>
<div class="actions lasting">${edit}${lasting.length > 0 && html`<span class="soft">${approval.kind === "tool" ? "Also for later calls:" : "Or:"}</span>`}${lasting}</div></div>`;
}
