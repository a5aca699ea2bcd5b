/**
 * Filters what passes between VS Code and the sidecar: nothing that VS Code shows itself in the same file, and commands of
 * lenses and code actions that the extension runs in its own way.
 */

import { type CodeLens, type CompletionItem, CompletionItemKind, commands } from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { hasOwnSchema, isSharedFile } from "./files";

const SHOWN_BY_VSCODE = new Set(["mcp.server.start", "mcp.server.stop", "mcp.server.restart"]);
/** Mistakes that VS Code's own JSON support reports, in every JSON file and in those that it has a schema for. */
const REPORTED = new Set(["syntax", "duplicate-key"]);
const REPORTED_BY_SCHEMA = new Set([...REPORTED, "wrong-type", "missing-key", "unknown-key", "unknown-type"]);

export function middleware(): Middleware {
  return {
    executeCommand: (command, args) =>
      commands.executeCommand("mcpSidecar.perform", { command, arguments: args[0] ?? {} }),
    provideCodeLenses: async (document, token, next) => {
      const lenses = await next(document, token);
      return isSharedFile(document.uri.path) ? lenses?.filter(notShownByVSCode) : lenses;
    },
    provideCompletionItem: async (document, position, context, token, next) => {
      const found = await next(document, position, context, token);
      if (!found || !hasOwnSchema(document.uri.path)) {
        return found;
      }
      const ours = ({ kind }: CompletionItem) => kind !== CompletionItemKind.Property;
      return Array.isArray(found) ? found.filter(ours) : Object.assign(found, { items: found.items.filter(ours) });
    },
    // VS Code has an outline of every JSON file, and would show ours below it.
    provideDocumentSymbols: () => undefined,
    handleDiagnostics: (uri, diagnostics, next) => {
      const reported = hasOwnSchema(uri.path) ? REPORTED_BY_SCHEMA : REPORTED;
      next(
        uri,
        diagnostics.filter(({ code }) => !reported.has(String(typeof code === "object" ? code.value : code))),
      );
    },
  };
}

function notShownByVSCode(lens: CodeLens): boolean {
  return !SHOWN_BY_VSCODE.has(lens.command?.command ?? "");
}
