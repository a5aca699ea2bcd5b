/** What a tool or a prompt is, as a page. It has a button that runs or inserts it: showing it does neither. Pure. */

import { traits } from "../approvals/labels";
import { fieldList } from "../form/page";
import type { Field, PromptArgument, PromptInfo, ToolInfo } from "../protocol";
import { sentence, withoutHidden } from "../text";
import { LEVEL_WORDS } from "../views/serverRows";
import { type Html, html } from "../web/html";

export function toolPage(tool: ToolInfo, fields: readonly Field[]): Html {
  const { name, server, annotations, level, source } = tool;
  const button = (send: string, label: string, kind = "") =>
    html`<button class="${kind}" data-send="${send}" data-tool="${name}">${label}</button>`;
  return html`<h1 tabindex="-1">${tool.tool}</h1>
<p class="soft">Tool of the server <code>${server}</code>${tool.title && ` · ${tool.title}`}</p>
<div class="chips">${traits(annotations).map(([text, mood]) => html`<span class="chip ${mood}">${text}</span>`)}</div>
<div class="actions">${tool.callable && button("run", "Run…", "main")}${button("level", "Set level…")}
${button("explain", "Why this level?")}</div>
<p class="text">${withoutHidden(tool.description)}</p>
<h2>Level</h2><p><code>${level}</code>: ${LEVEL_WORDS[level]} <span class="soft">(decided by: ${source})</span></p>
${tool.changed && html`<p class="warn">${sentence("this tool has changed since you allowed it")}.</p>`}
<h2>Arguments</h2>${fieldList(fields)}`;
}

export function promptPage(prompt: PromptInfo): Html {
  const row = ({ name, description, required }: PromptArgument) =>
    html`<dt>${name}</dt><dd>${required ? "required" : "optional"} <span class="soft">${description}</span></dd>`;
  const takes = prompt.arguments ?? [];
  return html`<h1 tabindex="-1">${prompt.title ?? prompt.name}</h1>
<p class="soft">Prompt <code>${prompt.name}</code> of the server <code>${prompt.server}</code></p>
<div class="actions"><button class="main" data-send="prompt">Insert into editor…</button></div>
<p class="text">${prompt.description && withoutHidden(prompt.description)}</p>
<h2>Arguments</h2>${takes.length > 0 ? html`<dl>${takes.map(row)}</dl>` : html`<p class="soft">none</p>`}`;
}
