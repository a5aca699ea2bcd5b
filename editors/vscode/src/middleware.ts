/**
 * What passes between VS Code and the sidecar on its way: language requests only for config files, no lens that VS Code
 * shows itself, and commands of lenses and actions that have a window here.
 */

import { type CodeLens, commands, type TextDocument, workspace } from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { showError } from "./errors";
import { isConfigFile, isSharedFile } from "./files";
import type { Sidecar } from "./sidecar";

/** Commands of the sidecar that a person clicks on, and what shows them here. */
const TAKEN_OVER: Record<string, string> = {
  "mcp.server.logs": "mcpSidecar.server.logs",
  "mcp.server.test": "mcpSidecar.server.test",
  "mcp.server.trust": "mcpSidecar.server.trust",
  "mcp.server.auth": "mcpSidecar.server.signIn",
  "mcp.servers": "mcpSidecar.server.reveal",
  // The lens that tells what saving will do.
  "mcp.config": "workbench.action.files.save",
  "mcp.config.reload": "mcpSidecar.config.reload",
};

const DOUBLED = new Set(["mcp.server.start", "mcp.server.stop", "mcp.server.restart"]);

export function middleware(sidecar: Sidecar): Middleware {
  return {
    executeCommand: async (command, args, next) => {
      const instead = TAKEN_OVER[command];
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
      return isSharedFile(document.uri.path) ? lenses?.filter(notDoubled) : lenses;
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

function notDoubled(lens: CodeLens): boolean {
  return !DOUBLED.has(lens.command?.command ?? "");
}
