/** Read-only documents: texts, server logs, and files as a call would change them. */

import { type Disposable, EventEmitter, languages, Uri, window, workspace } from "vscode";
import { when } from "./clock";
import type { LogLine } from "./protocol";
import type { Sidecar } from "./sidecar";

const TEXT = "mcp-text";
const LOG = "mcp-log";
/** How many texts are kept; the oldest are removed first. */
const KEPT = 50;
const LINES = 1_000;
/** A log is redrawn at most this often. */
const DRAW_MS = 200;

const texts = new Map<string, string>();
let count = 0;

/** Opens a text as a read-only document. The extension of `name` chooses the language, unless `language` is given. */
export async function showText(name: string, text: string, language?: string): Promise<void> {
  const document = await workspace.openTextDocument(textUri(name, text));
  if (language) {
    await languages.setTextDocumentLanguage(document, language);
  }
  await window.showTextDocument(document, { preview: true });
}

/** The address of a read-only document with this text. */
export function textUri(name: string, text: string): Uri {
  const uri = Uri.from({ scheme: TEXT, path: `/${name.replace(/[\\/?#]/g, "-")}`, query: String(++count) });
  texts.set(uri.toString(), text);
  for (const old of [...texts.keys()].slice(0, -KEPT)) {
    texts.delete(old);
  }
  return uri;
}

/** Opens the log of a server, which is updated while the server runs. */
export async function showLog(server: string): Promise<void> {
  const document = await workspace.openTextDocument(logUri(server));
  await languages.setTextDocumentLanguage(document, "log");
  const editor = await window.showTextDocument(document, { preview: true });
  const end = document.lineAt(document.lineCount - 1).range;
  editor.revealRange(end);
}

function logUri(server: string): Uri {
  return Uri.from({ scheme: LOG, path: `/${server}.log` });
}

export function logText(lines: readonly LogLine[]): string {
  const line = ({ time, source, level, text }: LogLine) => `${when(time)} [${level}] ${source}: ${text}`;
  return lines.length > 0 ? `${lines.map(line).join("\n")}\n` : "The log is empty.\n";
}

export function registerDocuments(sidecar: Sidecar): Disposable[] {
  const changed = new EventEmitter<Uri>();
  const waiting = new Map<string, NodeJS.Timeout>();
  const log = sidecar.state.onLog(({ server }) => {
    const uri = logUri(server);
    const shown = workspace.textDocuments.some(document => document.uri.toString() === uri.toString());
    if (shown && !waiting.has(server)) {
      const draw = () => {
        waiting.delete(server);
        changed.fire(uri);
      };
      waiting.set(server, setTimeout(draw, DRAW_MS));
    }
  });
  const readLog = async (uri: Uri) => {
    const server = uri.path.slice(1).replace(/\.log$/, "");
    const { lines } = await sidecar.command("mcp.server.logs", { server, limit: LINES });
    return logText(lines);
  };
  return [
    changed,
    log,
    workspace.registerTextDocumentContentProvider(TEXT, {
      provideTextDocumentContent: uri => texts.get(uri.toString()) ?? "This text is no longer available.",
    }),
    workspace.registerTextDocumentContentProvider(LOG, {
      onDidChange: changed.event,
      provideTextDocumentContent: readLog,
    }),
  ];
}
