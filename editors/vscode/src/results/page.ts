/** The result of a tool as a page: text as it is, JSON, pictures and sound; markdown where the server or the user says so. Pure. */

import { when } from "../clock";
import type { Call, Content, ToolResult } from "../protocol";
import { escaped, Html, html } from "../web/html";
import { formatted, repeats } from "./json";

/** Renders markdown as HTML. */
export type Markdown = (text: string) => Promise<Html>;

/** How texts are shown: as they are, as markdown, or the whole result as the server sent it. */
export type View = "text" | "markdown" | "raw";
const VIEWS: Record<View, string> = { text: "Text", markdown: "Markdown", raw: "Raw" };

/** What is shown of a result. */
export interface Shown {
  server: string;
  content: readonly Content[];
  structuredContent?: unknown;
}

/** How many characters of one text are on the page; a document shows all of them. */
const MOST_CHARACTERS = 256 * 1024;

/** The whole result as text, exactly as it was sent, for the clipboard and for an editor. */
export function plainText({ content, structuredContent }: Omit<Shown, "server">): string {
  const structured = () => (structuredContent === undefined ? "" : JSON.stringify(structuredContent, undefined, 2));
  return content.length > 0 ? content.map(textOf).join("\n\n") : structured();
}

/** The whole result as a document: its text, and the language of it. */
export function documentOf(shown: Shown, view: View): { text: string; ending: string; language: string } {
  if (view === "raw") {
    return { text: raw(shown), ending: "json", language: "json" };
  }
  const text = plainText(shown);
  const json = formatted(text);
  if (json !== undefined) {
    return { text: json, ending: "json", language: "json" };
  }
  const isMarkdown = view === "markdown" || (shown.content.length > 0 && shown.content.every(saysMarkdown));
  return isMarkdown ? { text, ending: "md", language: "markdown" } : { text, ending: "txt", language: "plaintext" };
}

function raw({ content, structuredContent }: Shown): string {
  return JSON.stringify({ content, structuredContent }, undefined, 2);
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

/** Whether the server says that a text is markdown. */
function saysMarkdown({ mimeType, resource }: Content): boolean {
  return /^text\/(x-)?markdown\b/.test(resource?.mimeType ?? mimeType ?? "");
}

export async function body(shown: Shown, view: View, markdown: Markdown): Promise<Html> {
  const { content, structuredContent } = shown;
  if (view === "raw") {
    return pre(raw(shown), "json");
  }
  const blocks = await Promise.all(content.map(one => block(shown.server, one, view, markdown)));
  const extra = structuredContent === undefined || repeats(content, structuredContent) ? undefined : structuredContent;
  const more = extra === undefined ? undefined : pre(JSON.stringify(extra, undefined, 2), "json");
  return html`${blocks}${more && html`${blocks.length > 0 && html`<h2>Structured content</h2>`}${more}`}${
    blocks.length === 0 && !more && html`<p class="soft">empty result</p>`
  }`;
}

async function block(server: string, content: Content, view: View, markdown: Markdown): Promise<Html> {
  const show = (value: string) =>
    view === "markdown" || saysMarkdown(content) ? rendered(value, markdown) : plain(value);
  switch (content.type) {
    case "text":
      return show(content.text ?? "");
    case "image":
    case "audio":
      return media(content.mimeType, content.data);
    case "resource_link":
      return link(server, content.uri ?? "", content.title ?? content.name, content.description);
    case "resource": {
      const { uri = "", text, blob, mimeType } = content.resource ?? {};
      return html`${link(server, uri)}${text === undefined ? media(mimeType, blob) : await show(text)}`;
    }
    default:
      return pre(JSON.stringify(content, undefined, 2), "json");
  }
}

async function rendered(text: string, markdown: Markdown): Promise<Html> {
  const { head, more } = cut(text);
  return html`<section class="rendered">${await markdown(head)}</section>${more}`;
}

function plain(text: string): Html {
  const json = formatted(text);
  return json === undefined ? pre(text, "") : pre(json, "json");
}

function pre(text: string, kind: string): Html {
  const { head, more } = cut(text);
  return html`<pre class="${kind}" tabindex="0">${new Html(escaped(head))}</pre>${more}`;
}

/** The beginning of a very long text, and a way to all of it. */
function cut(text: string): { head: string; more: Html | false } {
  const left = text.length - MOST_CHARACTERS;
  const more =
    left > 0 &&
    html`<p class="warn">${left} more characters.
<button class="link" data-send="document">Open as document</button></p>`;
  return { head: text.slice(0, MOST_CHARACTERS), more };
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
    return html`<p><audio controls src="${address}" aria-label="${mimeType}"></audio></p>`;
  }
  return html`<p class="soft">${mimeType || "data"}, ${Math.floor((data.length * 3) / 4)} bytes</p>`;
}

export function duration(ms: number): string {
  return ms < 1_000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** The heading of a result, with a switch between the views. */
function resultHead(view: View): Html {
  const option = (name: string) =>
    html`<button class="option" data-send="view" data-view="${name}" aria-pressed="${String(name === view)}">${
      VIEWS[name as View]
    }</button>`;
  return html`<div class="head"><h2>Result</h2><div class="options" role="group" aria-label="How the result is shown">${Object.keys(
    VIEWS,
  ).map(option)}</div></div>`;
}

/** The page of a new result. */
export function resultPage(result: ToolResult, given: unknown, view: View, inside: Html): Html {
  return html`<h1 tabindex="-1">${result.tool}</h1>
<div class="chips">
<span class="chip ${result.isError ? "bad" : "good"}">${result.isError ? "the tool reported an error" : "ok"}</span>
<span class="chip">${result.server}</span><span class="chip">${duration(result.durationMs)}</span>
<span class="chip">${result.decision}</span></div>
<div class="actions"><button class="main" data-send="again">Run again…</button><button data-send="copy">Copy</button>
<button data-send="document">Open as document</button><button data-send="insert">Insert into editor</button></div>
${resultHead(view)}${inside}
<h2>Arguments</h2>${pre(JSON.stringify(given, undefined, 2), "json")}`;
}

/** The page of a call in the log. */
export function callPage(call: Call, view: View, inside: Html): Html {
  const who = call.requester.kind === "user" ? "you" : `${call.requester.kind} ${call.requester.name ?? ""}`;
  const asked = call.requestedArguments;
  // An agent runs its own tool itself: there is no result here, and nothing to run again.
  const isOwn = call.kind === "hook";
  return html`<h1 tabindex="-1">${call.tool}</h1>
<div class="chips">
<span class="chip ${call.success ? "good" : "bad"}">${call.success ? "ok" : "failed"}</span>
<span class="chip">${call.server}</span><span class="chip">${duration(call.durationMs)}</span>
<span class="chip">asked by ${who}</span><span class="chip">${call.decision} (${call.decidedBy})</span>
${call.workflow && html`<span class="chip">workflow ${call.workflow}</span>`}
${call.folder && html`<span class="chip">in ${call.folder}</span>`}
<span class="chip">${when(call.time)}</span></div>
<div class="actions">${!isOwn && html`<button class="main" data-send="again">Run again…</button>`}<button data-send="copy">Copy</button>
<button data-send="document">Open as document</button></div>
${call.error && html`<h2>Error</h2><pre>${call.error}</pre>`}
${!isOwn && html`${resultHead(view)}${inside}`}
<h2>Arguments</h2>${pre(JSON.stringify(call.arguments ?? {}, undefined, 2), "json")}
${asked !== undefined && html`<h2>Arguments before you changed them</h2>${pre(JSON.stringify(asked, undefined, 2), "json")}`}`;
}
