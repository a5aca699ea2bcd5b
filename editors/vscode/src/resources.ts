/** Resources of servers as read-only documents, `mcp://server/uri`, updated when the server reports a change. */

import { type Disposable, EventEmitter, languages, Uri, window, workspace } from "vscode";
import type { App } from "./commands/app";
import type { ResourceContents, ResourceInfo } from "./protocol";
import type { Sidecar } from "./sidecar";

export const SCHEME = "mcp";

/** The languages of known MIME types. */
const LANGUAGES: Record<string, string> = {
  "text/markdown": "markdown",
  "application/json": "json",
  "text/html": "html",
  "text/css": "css",
  "text/x-python": "python",
  "text/x-rust": "rust",
  "text/javascript": "javascript",
  "application/xml": "xml",
  "text/xml": "xml",
  "application/yaml": "yaml",
};

export function resourceUri(server: string, uri: string): Uri {
  return Uri.from({ scheme: SCHEME, authority: server, path: `/${uri}` });
}

/** The server and the URI of a resource. VS Code lowercases the name of the server. */
export function resourceOf(uri: Uri, servers: readonly string[] = []): { server: string; uri: string } {
  const named = uri.authority;
  const server =
    servers.find(name => name === named) ?? servers.find(name => name.toLowerCase() === named.toLowerCase());
  return { server: server ?? named, uri: uri.path.slice(1) };
}

export function languageOf(mimeType: string | undefined): string | undefined {
  return LANGUAGES[(mimeType ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? ""];
}

/** The text of a resource; binary parts only by type and size. */
export function textOf(contents: readonly ResourceContents[]): string {
  const part = ({ text, blob, mimeType }: ResourceContents) =>
    text ?? `(${mimeType ?? "data"}, ${Math.floor(((blob ?? "").length * 3) / 4)} bytes)`;
  return contents.map(part).join("\n");
}

/** Opens a resource: text as a document, binary data on a page. */
export async function openResource({ sidecar, results }: App, server: string, uri: string): Promise<void> {
  const { contents } = await sidecar.command("mcp.resource.read", { server, uri });
  if (contents.some(content => content.text === undefined && content.blob)) {
    results.resource(server, uri, contents);
    return;
  }
  const document = await workspace.openTextDocument(resourceUri(server, uri));
  const language = languageOf(contents[0]?.mimeType);
  if (language) {
    await languages.setTextDocumentLanguage(document, language);
  }
  await window.showTextDocument(document, { preview: true });
}

/** Asks for the variables of a URI template, one after another. */
export async function expand(resource: ResourceInfo): Promise<string | undefined> {
  let uri = resource.uri ?? resource.uriTemplate ?? "";
  for (const variable of variables(uri)) {
    const options = { title: resource.title ?? resource.name, prompt: variable.name, ignoreFocusOut: true };
    const value = await window.showInputBox(options);
    if (value === undefined) {
      return undefined;
    }
    uri = uri.replace(variable.written, encodeURIComponent(value));
  }
  return uri;
}

/** The variables of a URI template. */
export function variables(template: string): { written: string; name: string }[] {
  return [...template.matchAll(/\{[+#./;?&]?([\w.]+)[^}]*\}/g)].map(found => ({
    written: found[0],
    name: found[1] ?? "",
  }));
}

export function registerResources(sidecar: Sidecar): Disposable[] {
  const changed = new EventEmitter<Uri>();
  return [
    changed,
    sidecar.state.onResource(({ server, uri }) => changed.fire(resourceUri(server, uri))),
    workspace.registerTextDocumentContentProvider(SCHEME, {
      onDidChange: changed.event,
      provideTextDocumentContent: async (address, token) => {
        const names = sidecar.state.servers.map(server => server.name);
        const params = { ...resourceOf(address, names), subscribe: true };
        const { contents } = await sidecar.command("mcp.resource.read", params, token);
        return textOf(contents);
      },
    }),
  ];
}
