/** The dashboard: how often tools ran, how long they took, and the level of every tool. Pure. */

import { LEVELS, type Level, type ServerMetrics, type ServerStatus, type ToolInfo, type ViewCost } from "../protocol";
import { duration } from "../results/page";
import { tokens } from "../text";
import { annotationText, countServers } from "../views/serverRows";
import { type Html, html } from "../web/html";

export interface DashboardData {
  servers: readonly ServerStatus[];
  tools: readonly ToolInfo[];
  metrics: readonly ServerMetrics[];
  views: readonly ViewCost[];
  approvals: number;
}

export function dashboardPage(data: DashboardData): Html {
  return html`<h1 tabindex="-1">MCP Sidecar</h1>${cards(data)}${levelTable(data)}${costTable(data.views)}${metricsTable(data.metrics)}`;
}

function cards({ servers, metrics, approvals }: DashboardData): Html {
  const { connected, wanted, failed } = countServers(servers);
  const available = servers.reduce((sum, server) => sum + server.toolCount, 0);
  const rows = metrics.flatMap(one => one.tools);
  const calls = rows.reduce((sum, row) => sum + row.calls, 0);
  const errors = rows.reduce((sum, row) => sum + row.errors, 0);
  const card = (value: string | number, text: string, mood = "") =>
    html`<div class="card"><b class="${mood}">${value}</b>${text}</div>`;
  return html`<div class="cards">
${card(`${connected}/${wanted}`, "servers connected", failed > 0 ? "bad" : "good")}
${card(available, "tools available")}
${card(tokens(servers.reduce((sum, server) => sum + server.tokens, 0)), "tokens of definitions")}
${card(approvals, "questions waiting", approvals > 0 ? "warn" : "")}
${card(calls, "calls")}
${card(errors, "failed calls", errors > 0 ? "bad" : "")}</div>`;
}

function levels(selected?: Level): Html[] {
  return LEVELS.map(level =>
    level === selected ? html`<option selected>${level}</option>` : html`<option>${level}</option>`,
  );
}

function levelTable({ servers, tools }: DashboardData): Html {
  if (tools.length === 0) {
    return html`<h2>Policy</h2><p class="soft">No server is connected yet.</p>`;
  }
  const shown = servers.filter(({ name }) => tools.some(tool => tool.server === name));
  return html`<h2>Policy</h2>
<div class="actions"><label>Set ticked tools to <select name="level">${levels("require-approval")}</select></label>
<select name="scope" aria-label="where the level is saved"><option value="session">for this session</option><option value="file">in the server's file</option></select>
<button class="main" data-send="bulk" data-count="ticked">Apply to <span class="count">0</span> ticked</button>
<button data-send="levels" data-count="changed">Save changed levels (<span class="count">0</span>)</button><span class="spread"></span><button data-send="refresh">Refresh</button></div>
<table><thead><tr><th><span class="spoken">Selected</span></th><th>Tool</th><th>Declares</th><th class="number">Tokens</th><th>Level</th><th>Decided by</th></tr></thead>
<tbody>${shown.map(server => group(server, tools))}</tbody></table>`;
}

function group({ name, tokens }: ServerStatus, tools: readonly ToolInfo[]): Html {
  return html`<tr class="server"><td><input type="checkbox" data-all="${name}" aria-label="all tools of ${name}"></td>
<td colspan="2">${name}</td><td class="number">${tokens}</td>
<td colspan="2"></td></tr>${tools.filter(tool => tool.server === name).map(row)}`;
}

function row(tool: ToolInfo): Html {
  return html`<tr><td><input type="checkbox" data-item="${tool.name}" data-group="${tool.server}" aria-label="${tool.tool}"></td>
<td class="name" title="${tool.description}">${tool.tool}</td>
<td class="${tool.annotations.destructive && !tool.annotations.readOnly ? "bad" : "soft"}">${annotationText(tool.annotations)}</td>
<td class="number ${tool.level === "disable" ? "soft" : ""}">${tool.tokens}</td>
<td><select data-tool="${tool.name}" aria-label="level of ${tool.tool}">${levels(tool.level)}</select></td>
<td class="soft">${tool.changed ? html`<span class="warn">changed since you allowed it</span>` : tool.source}</td></tr>`;
}

/** What the tools cost that agents see, by their sections in `config.toml`. */
function costTable(views: readonly ViewCost[]): Html {
  const name = ({ agent }: ViewCost) => agent || (views.length > 1 ? "other agents" : "all agents");
  const row = (view: ViewCost) => html`<tr><td class="name">${name(view)}</td><td class="number">${view.tools}</td>
<td class="number">${view.tokens}</td><td class="soft">${view.search ? "searched with find_tools" : ""}</td></tr>`;
  return html`<h2>Context cost</h2><table><thead><tr><th>Agents</th><th class="number">Tools</th>
<th class="number">Tokens</th><th></th></tr></thead><tbody>${views.map(row)}</tbody></table>`;
}

function metricsTable(metrics: readonly ServerMetrics[]): Html {
  const rows = metrics.flatMap(one => one.tools.map(tool => ({ server: one.server, ...tool })));
  const times = metrics.filter(one => one.startMs !== undefined);
  const row = (
    one: (typeof rows)[number],
  ) => html`<tr><td class="name">${one.server}</td><td class="name">${one.tool}</td>
<td class="number">${one.calls}</td><td class="number ${one.errors > 0 ? "bad" : ""}">${one.errors}</td>
<td class="number">${duration(one.p50Ms)}</td><td class="number">${duration(one.p95Ms)}</td>
<td class="number">${duration(one.p99Ms)}</td><td class="number">${one.resultTokens}</td>
<td class="number">${one.totalResultTokens}</td></tr>`;
  const start = (one: ServerMetrics) => html`<tr><td class="name">${one.server}</td>
<td class="number">${duration(one.startMs ?? 0)}</td><td class="number">${duration(one.discoverMs ?? 0)}</td>
<td class="number">${one.restarts}</td><td class="number">${uptime(one.uptimeMs)}</td></tr>`;
  return html`<h2>Calls</h2>${
    rows.length === 0
      ? html`<p class="soft">No tool has been called yet.</p>`
      : html`<table><thead><tr><th>Server</th><th>Tool</th><th class="number">Calls</th><th class="number">Failed</th>
<th class="number">p50</th><th class="number">p95</th><th class="number">p99</th>
<th class="number">Tokens of a result</th><th class="number">of all results</th></tr></thead><tbody>${rows.map(row)}</tbody></table>`
  }
<h2>Servers</h2><table><thead><tr><th>Server</th><th class="number">Started in</th><th class="number">Listed in</th>
<th class="number">Restarts</th><th class="number">Uptime</th></tr></thead><tbody>${times.map(start)}</tbody></table>`;
}

export function uptime(ms: number | undefined): string {
  if (ms === undefined) {
    return "–";
  }
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
