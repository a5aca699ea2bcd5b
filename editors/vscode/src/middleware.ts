/**
 * Filters what passes between VS Code and the sidecar: language requests only for config files, no lens that VS Code
 * shows itself, and commands of lenses and code actions that the extension runs in its own way.
 */

import { type CodeLens, commands, type TextDocument, workspace } from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { showError } from "./errors";
import { isConfigFile, isSharedFile } from "./files";
import type { Sidecar } from "./sidecar";

/** Commands of lenses and code actions, and the command of this extension that replaces each. */
const REPLACED: Record<string, string> = {
  "mcp.server.logs": "mcpSidecar.server.logs",
  "mcp.server.test": "mcpSidecar.server.test",
  "mcp.server.trust": "mcpSidecar.server.trust",
  "mcp.server.auth": "mcpSidecar.server.signIn",
  "mcp.servers": "mcpSidecar.server.reveal",
  // The lens that says what saving will do.
  "mcp.config": "workbench.action.files.save",
  "mcp.config.reload": "mcpSidecar.config.reload",
};

const SHOWN_BY_VSCODE = new Set(["mcp.server.start", "mcp.server.stop", "mcp.server.restart"]);

export function middleware(sidecar: Sidecar): Middleware {
  return {
    executeCommand: async (command, args, next) => {
      const instead = REPLACED[command];
      if (instead) {
        return commands.executeCommand(instead, ...args);
      }
      if (command === "mcp.action.run" && !args[0]?.action) {
        return commands.executeCommand("mcpSidecar.tool.callWithSelection");
      }
      try {
        return await next(command, args);
      } catch (error) {
        return showError(error, sidecar);
      }
    },
    provideCodeLenses: async (document, token, next) => {
      const lenses = isConfig(document) ? await next(document, token) : undefined;
      return isSharedFile(document.uri.path) ? lenses?.filter(notShownByVSCode) : lenses;
    },
    provideCompletionItem: (document, position, context, token, next) =>
      isConfig(document) ? next(document, position, context, token) : undefined,
    provideHover: (document, position, token, next) =>
      isConfig(document) ? next(document, position, token) : undefined,
    provideDefinition: (document, position, token, next) =>
      isConfig(document) ? next(document, position, token) : undefined,
    provideReferences: (document, position, options, token, next) =>
      isConfig(document) ? next(document, position, options, token) : undefined,
    provideDocumentHighlights: (document, position, token, next) =>
      isConfig(document) ? next(document, position, token) : undefined,
    provideDocumentSymbols: (document, token, next) => (isConfig(document) ? next(document, token) : undefined),
    provideDocumentLinks: (document, token, next) => (isConfig(document) ? next(document, token) : undefined),
    provideFoldingRanges: (document, context, token, next) =>
      isConfig(document) ? next(document, context, token) : undefined,
    provideSelectionRanges: (document, positions, token, next) =>
      isConfig(document) ? next(document, positions, token) : undefined,
    provideInlayHints: (document, range, token, next) =>
      isConfig(document) ? next(document, range, token) : undefined,
    prepareRename: (document, position, token, next) =>
      isConfig(document) ? next(document, position, token) : undefined,
    provideRenameEdits: (document, position, name, token, next) =>
      isConfig(document) ? next(document, position, name, token) : undefined,
  };
}

function isConfig(document: TextDocument): boolean {
  const configuration = workspace.getConfiguration("mcpSidecar.files");
  const extra = [...(configuration.get<string[]>("project") ?? []), ...(configuration.get<string[]>("local") ?? [])];
  return isConfigFile(document.uri.path, extra);
}

function notShownByVSCode(lens: CodeLens): boolean {
  return !SHOWN_BY_VSCODE.has(lens.command?.command ?? "");
}
