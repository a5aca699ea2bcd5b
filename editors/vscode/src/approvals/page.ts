/** A question as a page: everything that decides whether it is answered with yes, and a button for each answer. Pure. */

import type { Approval } from "../protocol";
import { diff, type Html, html } from "../web/html";
import { answer, no, traits, who, yes } from "./words";

const DAY_MS = 24 * 3_600_000;

export function approvalPage(approval: Approval, others: number): Html {
  return html`<h1>${approval.title}</h1>
<p class="soft">${subtitle(approval)}${others > 0 && html` · <a href="#" data-send="next">${others} more waiting</a>`}</p>
${buttons(approval)}
${approval.kind === "tool" && chips(approval)}
${approval.detail && (approval.kind === "trust" ? definition(approval.detail) : html`<p class="text">${approval.detail}</p>`)}
${approval.url && html`<h2>Opens</h2><pre class="bad">${approval.url}</pre>`}
${approval.arguments && given(approval.arguments)}
${file(approval)}
${approval.diff && html`<h2>What changed</h2>${diff(approval.diff)}`}
${approval.schema && form(approval)}
`;
}

function subtitle(approval: Approval): string {
  const subject = approval.tool ? `${approval.server} › ${approval.tool}` : approval.server;
  const asked = approval.kind === "tool" ? ` · asked by ${who(approval)}` : "";
  // What may wait for days does so for as long as anybody cares to know.
  const brief = Date.parse(approval.expiresAt) - Date.parse(approval.createdAt) < DAY_MS;
  return `${subject}${asked}${brief ? ` · until ${clock(approval.expiresAt)}` : ""}`;
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
    const mood = word === "beware" ? "bad" : word === "allows" ? "warn" : "";
    return html`<dt>${word}</dt><dd><pre class="${mood}">${value}</pre></dd>`;
  };
  return html`<h2>What it is</h2><dl>${detail.split("\n").map(line)}</dl>`;
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
    return typeof one === "string" ? one : JSON.stringify(one, undefined, 2);
  };
  return html`<h2>Arguments</h2><dl>${names.map(name => html`<dt>${name}</dt><dd><pre>${value(name)}</pre></dd>`)}</dl>`;
}

function file({ change }: Approval): Html | false {
  return (
    change !== undefined &&
    html`<h2>Would ${change.isNew ? "make" : "change"} ${change.path}</h2>${diff(change.diff)}
<div class="actions"><button data-send="compare">Compare with the file…</button></div>`
  );
}

function form(approval: Approval): Html {
  const names = Object.entries(approval.schema?.properties ?? {});
  return html`<h2>Wants to know</h2><dl>${names.map(
    ([name, field]) => html`<dt>${field.title ?? name}</dt><dd>${field.description ?? field.type}</dd>`,
  )}</dl>`;
}

function buttons(approval: Approval): Html {
  const [plainYes, plainNo] = [yes(approval), no(approval)];
  const button = (option: string) =>
    html`<button class="${option === plainYes ? "main" : ""}" data-send="answer" data-id="${approval.id}"
data-decision="${option}">${answer(approval, option)}</button>`;
  const refusals = ["deny", "disable", "decline", "cancel"];
  const note = html`<input type="text" name="note" size="28" placeholder="why not (the agent reads it)">`;
  const accepting = approval.options.filter(option => !refusals.includes(option)).map(button);
  const refusing = approval.options.filter(option => refusals.includes(option)).map(button);
  return html`<div class="bar"><div class="actions">${accepting}</div>
<div class="actions">${refusing}${plainNo === "deny" && approval.kind === "tool" && note}</div></div>`;
}
