/** A question as a page: everything that matters for the answer, and a button for each answer. Pure. */

import type { Approval, ServerStatus } from "../protocol";
import { withoutHidden } from "../text";
import { diff, type Html, html } from "../web/html";
import { answerLabel, hasForm, no, traits, yes } from "./labels";

const DAY_MS = 24 * 3_600_000;

export interface Position {
  /** From 1. */
  place: number;
  count: number;
  /** Why this question is on the page although the user did not ask for it. */
  notice?: string | undefined;
}

export function approvalPage(approval: Approval, position: Position): Html {
  return html`${head(position)}
<h1 tabindex="-1">${approval.title}</h1>
<p class="soft">${subtitle(approval)}</p>
${answers(approval)}
${approval.kind === "tool" && chips(approval)}
${approval.detail && (approval.kind === "trust" ? definition(approval.detail) : html`<p class="text">${approval.detail}</p>`)}
${approval.url && html`<h2>Opens</h2><pre class="bad">${withoutHidden(approval.url)}</pre>`}
${approval.arguments && given(approval.arguments)}
${file(approval)}
${approval.diff && html`<h2>What changed</h2>${diff(withoutHidden(approval.diff))}`}
${approval.schema && form(approval)}
`;
}

/** For a server whose definition the user did not trust before: nothing is asked, but trust can still be given. */
export function trustPage({ name, file: from, config, trustDiff }: ServerStatus): Html {
  return html`<h1 tabindex="-1">Trust the server <code>${name}</code>?</h1>
<p class="soft">${from && html`Defined in ${from}. `}You did not trust this definition before.</p>
<div class="bar"><div class="actions">
<button class="main" data-send="answer" data-key="yes" aria-keyshortcuts="Control+Enter" data-server="${name}"
data-definition="${JSON.stringify(config)}">Trust <kbd aria-hidden="true">Ctrl+Enter</kbd></button>
<button data-send="close" data-key="no" aria-keyshortcuts="Control+Delete">Close <kbd aria-hidden="true">Ctrl+Delete</kbd></button></div></div>
<h2>Definition</h2><pre>${withoutHidden(JSON.stringify(config, undefined, 2))}</pre>
${trustDiff && html`<h2>What changed</h2>${diff(withoutHidden(trustDiff))}`}
`;
}

/** After a question has gone without an answer from this page, and no other one waits. */
export function gonePage(title: string): Html {
  return html`<h1 tabindex="-1">Nothing is waiting for your answer</h1>
<p>“${title}” was answered elsewhere, or it is no longer asked.</p>
<div class="actions"><button data-send="close">Close</button></div>`;
}

function head({ place, count, notice }: Position): Html {
  const several = html`Question ${place} of ${count}
<button class="link" data-send="previous">Previous</button> <button class="link" data-send="next">Next</button>`;
  return html`<p class="place">${count > 1 && several}</p>
<p class="notice" role="status">${notice}</p>`;
}

function subtitle(approval: Approval): Html {
  const { server, tool, requester } = approval;
  const asked =
    requester.kind !== "user" && html` · asked by the ${requester.kind} <code>${requester.name || "unnamed"}</code>`;
  // A question that may wait for days needs no deadline.
  const brief = Date.parse(approval.expiresAt) - Date.parse(approval.createdAt) < DAY_MS;
  return html`Server <code>${server}</code>${tool && html` · tool <code>${tool}</code>`}${approval.kind === "tool" && asked}${
    brief && ` · until ${clock(approval.expiresAt)}`
  }`;
}

export function clock(time: string): string {
  const date = new Date(time);
  const two = (number: number) => String(number).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
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

function given(values: Record<string, unknown>): Html {
  const names = Object.keys(values);
  if (names.length === 0) {
    return html`<h2>Arguments</h2><p class="soft">none</p>`;
  }
  const value = (name: string) => {
    const one = values[name];
    return withoutHidden(typeof one === "string" ? one : JSON.stringify(one, undefined, 2));
  };
  return html`<h2>Arguments</h2><dl>${names.map(
    name => html`<dt>${withoutHidden(name)}</dt><dd><pre>${value(name)}</pre></dd>`,
  )}</dl>`;
}

function file({ change }: Approval): Html | false {
  return (
    change !== undefined &&
    html`<h2>Would ${change.isNew ? "create" : "change"} <code>${change.path}</code></h2>${diff(withoutHidden(change.diff))}
<div class="actions"><button data-send="compare">Compare with the file…</button></div>`
  );
}

function form(approval: Approval): Html | false {
  const names = Object.entries(approval.schema?.properties ?? {});
  return (
    hasForm(approval) &&
    html`<h2>Asks for</h2><dl>${names.map(
      ([name, field]) => html`<dt>${field.title ?? name}</dt><dd>${field.description ?? field.type}</dd>`,
    )}</dl>`
  );
}

/** Two plain answers for this question, and below them, smaller, those that also count for later calls. */
function answers(approval: Approval): Html {
  const [plainYes, plainNo] = [yes(approval), no(approval)];
  const attributes = (option: string) => html`data-send="answer" data-id="${approval.id}" data-decision="${option}"`;
  const label = (option: string) => answerLabel(approval, option);
  const others = approval.options.filter(option => option !== plainYes && option !== plainNo);
  const lasting = others.map(option => html`<button class="link" ${attributes(option)}>${label(option)}</button>`);
  const note =
    plainNo === "deny" &&
    approval.kind === "tool" &&
    html`<input type="text" name="note" data-enter="no" size="34" placeholder="Why not? The agent reads this. Enter denies."
aria-label="Why not? The agent reads this. Enter denies.">`;
  return html`<div class="bar"><div class="actions">
${plainYes && html`<button class="main" data-key="yes" aria-keyshortcuts="Control+Enter" ${attributes(plainYes)}>${label(plainYes)} <kbd aria-hidden="true">Ctrl+Enter</kbd></button>`}
${plainNo && html`<button data-key="no" aria-keyshortcuts="Control+Delete" ${attributes(plainNo)}>${label(plainNo)} <kbd aria-hidden="true">Ctrl+Delete</kbd></button>`}
${note}</div>
${lasting.length > 0 && html`<div class="actions lasting"><span class="soft">${approval.kind === "tool" ? "Also for later calls:" : "Or:"}</span>${lasting}</div>`}</div>`;
}
