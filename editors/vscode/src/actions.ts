/**
 * The `actions` of config files, as code actions in all other files. These files are not sent to the sidecar: it lists the
 * actions for a type of file once, and gets the text when one of them runs.
 */

import {
  CodeAction,
  CodeActionKind,
  CodeActionTriggerKind,
  commands,
  type Disposable,
  languages,
  type Range,
  type TextDocument,
} from "vscode";
import { type App, register } from "./commands/app";
import { isConfigFile } from "./files";
import type { ActionEntry } from "./protocol";
import { configNames, setting } from "./settings";

interface Selected {
  document: TextDocument;
  range: Range;
}

export function registerActions(app: App): Disposable[] {
  const { sidecar } = app;
  const lists = new Map<string, Promise<ActionEntry[]>>();
  const listed = (filetype: string) => {
    const known = lists.get(filetype);
    if (known) {
      return known;
    }
    const asked = sidecar.command("mcp.actions", { filetype }).then(
      ({ actions }) => actions,
      error => {
        lists.delete(filetype);
        sidecar.log.warn(`cannot list the actions: ${error}`);
        return [];
      },
    );
    lists.set(filetype, asked);
    return asked;
  };
  const forget = () => lists.clear();
  register(app, "mcpSidecar.action.run", (action: string | undefined, selected: Selected) =>
    run(app, action, selected),
  );
  return [
    sidecar.onRunStatus(forget),
    sidecar.state.onServers(forget),
    languages.registerCodeActionsProvider(
      { scheme: "file" },
      {
        provideCodeActions: async (document, range, { triggerKind }) => {
          const isConfig = isConfigFile(document.uri.path, configNames());
          const invoked = triggerKind === CodeActionTriggerKind.Invoke;
          if (isConfig || sidecar.runStatus !== "running" || !(invoked || setting("editor.lightBulb"))) {
            return [];
          }
          const actions = await listed(document.languageId);
          return actions
            .filter(({ automatic }) => invoked || automatic)
            .map(({ title, action }) => codeAction(title, action, { document, range }));
        },
      },
      { providedCodeActionKinds: [CodeActionKind.Refactor] },
    ),
  ];
}

function codeAction(title: string, action: string | undefined, selected: Selected): CodeAction {
  const made = new CodeAction(title, CodeActionKind.Refactor);
  made.command = { title, command: "mcpSidecar.action.run", arguments: [action, selected] };
  return made;
}

/** Runs an action with the text as it stands in the editor, saved or not. */
async function run({ sidecar }: App, action: string | undefined, { document, range }: Selected): Promise<unknown> {
  if (!action) {
    return commands.executeCommand("mcpSidecar.tool.callWithSelection");
  }
  const { start, end } = range;
  const position = ({ line, character }: typeof start) => ({ line, character });
  return sidecar.command("mcp.action.run", {
    action,
    uri: document.uri.toString(),
    range: { start: position(start), end: position(end) },
    document: { filetype: document.languageId, version: document.version, text: document.getText() },
  });
}
