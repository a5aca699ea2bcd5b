/** The result of a tool as a page: text as markdown, JSON, pictures and sound. Pure. */

import type { Call, Content, ToolResult } from "../protocol";
import { type Html, html } from "../web/html";

/** Renders markdown as HTML. */
export type Markdown = (text: string) => Promise<Html>;

/** The JSON value of a result that is one, whether it was sent as text or as structured content. */
export function jsonOf(result: Pick<ToolResult, "content" | "structuredContent">): unknown {
  const [only, ...others] = result.content;
  if (!only) {
    return result.structuredContent;
  }
  if (others.length > 0 || only.type !== "text") {
    return undefined;
  }
  try {
    const value: unknown = JSON.parse(only.text ?? "");
    return typeof value === "object" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The whole result as text, for a document or the clipboard. */
export function plainText(result: Pick<ToolResult, "content" | "structuredContent">): string {
  const value = jsonOf(result);
  if (value !== undefined && value !== null) {
    return JSON.stringify(value, undefined, 2);
  }
  return result.content.map(textOf).join("\n\n");
}

function textOf(content: Content): string {
  if (content.type === "text") {
    return content.text ?? "";
  }
  if (content.type === "resource") {
    return content.resource?.text ?? content.resource?.uri ?? "";
  }
  if (content.type === "resource_link") {
    return content.uri ?? "";
  }
  return `(${content.mimeType ?? content.type})`;
}

export async function body(
  server: string,
  content: readonly Content[],
  structured: unknown,
  markdown: Markdown,
): Promise<Html> {
  const value = jsonOf({ content: [...content], structuredContent: structured });
  if (value !== undefined && value !== null) {
    return html`<pre class="json">${JSON.stringify(value, undefined, 2)}</pre>`;
  }
  const blocks = await Promise.all(content.map(one => block(server, one, markdown)));
  const extra = structured === undefined ? undefined : JSON.stringify(structured, undefined, 2);
  return html`${blocks}${extra && html`<h2>Structured</h2><pre class="json">${extra}</pre>`}${
    blocks.length === 0 && !extra && html`<p class="soft">empty result</p>`
  }`;
}

async function block(server: string, content: Content, markdown: Markdown): Promise<Html> {
  switch (content.type) {
    case "text":
      return html`<section class="rendered">${await markdown(content.text ?? "")}</section>`;
    case "image":
    case "audio":
      return media(content.mimeType, content.data);
    case "resource_link":
      return link(server, content.uri ?? "", content.title ?? content.name, content.description);
    case "resource": {
      const { uri = "", text, blob, mimeType } = content.resource ?? {};
      const inside = text === undefined ? media(mimeType, blob) : html`<pre>${text}</pre>`;
      return html`${link(server, uri)}${inside}`;
    }
    default:
      return html`<pre class="json">${JSON.stringify(content, undefined, 2)}</pre>`;
  }
}

function link(server: string, uri: string, name = uri, description = ""): Html {
  return html`<p><a href="#" data-send="resource" data-server="${server}" data-uri="${uri}">${name}</a>
<span class="soft">${description}</span></p>`;
}

/** Binary data, if it is of a type that cannot run anything. */
export function media(mimeType = "", data = ""): Html {
  const address = `data:${mimeType};base64,${data}`;
  if (/^image\/(png|jpeg|gif|webp|bmp|avif)$/.test(mimeType)) {
    return html`<p class="rendered"><img src="${address}" alt="${mimeType}"></p>`;
  }
  if (/^audio\/[\w.+-]+$/.test(mimeType)) {
    return html`<p><audio controls src="${address}"></audio></p>`;
  }
  return html`<p class="soft">${mimeType || "data"}, ${Math.floor((data.length * 3) / 4)} bytes</p>`;
}

export function duration(ms: number): string {
  return ms < 1_000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** The page of a new result. */
export function resultPage(result: ToolResult, given: unknown, inside: Html): Html {
  return html`<h1 tabindex="-1">${result.tool}</h1>
<div class="chips">
<span class="chip ${result.isError ? "bad" : "good"}">${result.isError ? "the tool reported an error" : "ok"}</span>
<span class="chip">${result.server}</span><span class="chip">${duration(result.durationMs)}</span>
<span class="chip">${result.decision}</span></div>
<div class="actions"><button data-send="again">Run again…</button><button data-send="copy">Copy</button>
<button data-send="document">Open as document</button><button data-send="insert">Insert into editor</button></div>
<h2>Result</h2>${inside}
<h2>Arguments</h2><pre>${JSON.stringify(given, undefined, 2)}</pre>`;
}

/** The page of a call in the log. */
export function callPage(call: Call, inside: Html): Html {
  const who = call.requester.kind === "user" ? "you" : `${call.requester.kind} ${call.requester.name ?? ""}`;
  return html`<h1 tabindex="-1">${call.tool}</h1>
<div class="chips">
<span class="chip ${call.success ? "good" : "bad"}">${call.success ? "ok" : "failed"}</span>
<span class="chip">${call.server}</span><span class="chip">${duration(call.durationMs)}</span>
<span class="chip">asked by ${who}</span><span class="chip">${call.decision} (${call.decidedBy})</span>
${call.workflow && html`<span class="chip">workflow ${call.workflow}</span>`}
<span class="chip">${call.time}</span></div>
<div class="actions"><button data-send="again">Run again…</button><button data-send="copy">Copy</button>
<button data-send="document">Open as document</button></div>
${call.error && html`<h2>Error</h2><pre>${call.error}</pre>`}
<h2>Result</h2>${inside}
<h2>Arguments</h2><pre>${JSON.stringify(call.arguments ?? {}, undefined, 2)}</pre>`;
}
