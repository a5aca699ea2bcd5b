/**
 * The tools of the MCP server `vscode`: open editors, their text, the selection, symbols and problems. All are read-only.
 */
import * as vscode from "vscode";
import type { Tool } from "./server";

/** Longer lists are truncated, and say so: an agent can ask for one file at a time. */
const MOST_ITEMS = 500;
const MOST_CHARACTERS = 256 * 1024;

const severities = ["error", "warning", "information", "hint"];
const path = {
  type: "string",
  description: "A file, absolute or relative to the workspace; default: the current one",
};
const line = (description: string) => ({ type: "integer", minimum: 1, description });

export const tools: Record<string, Tool> = {
  open_editors: {
    description: "Lists the files that are open, in the order of their tabs",
    run: () => ({ editors: openEditors() }),
  },
  read_editor: {
    description: "Reads a file as it is in the editor, including unsaved changes",
    input: { properties: { path, first: line("First line"), last: line("Last line") } },
    run: async given => read(await find(given), given),
  },
  selection: {
    description: "Returns the selected text of the current editor, or the position of the cursor",
    run: () => selection(),
  },
  diagnostics: {
    description: "Lists the problems that linters and language servers report, in one file or in all",
    input: {
      properties: { path: { ...path, description: "A file, absolute or relative to the workspace; default: all" } },
    },
    run: async given =>
      cut("diagnostics", diagnostics(typeof given.path === "string" ? await locate(given.path) : undefined)),
  },
  symbols: {
    description: "Lists symbols such as functions and types: of one file, or of the whole workspace by name",
    input: {
      properties: {
        path,
        query: { type: "string", description: "Part of a name to search for in the whole workspace" },
      },
    },
    run: async given =>
      cut("symbols", typeof given.query === "string" ? await named(given.query) : await outline(await find(given))),
  },
};

function cut<Item>(name: string, items: Item[]) {
  return items.length > MOST_ITEMS
    ? { [name]: items.slice(0, MOST_ITEMS), leftOut: items.length - MOST_ITEMS }
    : { [name]: items };
}

function openEditors() {
  const tabs = vscode.window.tabGroups.all.flatMap(group => group.tabs);
  return tabs.flatMap(tab => {
    if (!(tab.input instanceof vscode.TabInputText)) return [];
    const uri = tab.input.uri;
    const document = vscode.workspace.textDocuments.find(each => each.uri.toString() === uri.toString());
    return [
      {
        path: shown(uri),
        language: document?.languageId,
        modified: tab.isDirty,
        active: tab.isActive && tab.group.isActive,
      },
    ];
  });
}

function read(document: vscode.TextDocument, given: Record<string, unknown>) {
  const first = Number(given.first ?? 1) - 1;
  const last = Math.min(Number(given.last ?? document.lineCount), document.lineCount) - 1;
  if (first > last)
    throw new Error(
      `${shown(document.uri)} has ${document.lineCount} lines, so there is nothing from line ${first + 1} on`,
    );
  const text = document.getText(new vscode.Range(first, 0, last, document.lineAt(last).text.length));
  if (text.length > MOST_CHARACTERS) {
    throw new Error(
      `${shown(document.uri)} is longer than ${MOST_CHARACTERS} characters there; ask for fewer lines with \`first\` and \`last\``,
    );
  }
  return text;
}

function selection() {
  const editor = vscode.window.activeTextEditor;
  if (!editor) throw new Error("no file is open in the editor");
  const { start, end, active } = editor.selection;
  return {
    path: shown(editor.document.uri),
    language: editor.document.languageId,
    cursor: { line: active.line + 1, character: active.character + 1 },
    first: start.line + 1,
    last: end.line + 1,
    text: editor.document.getText(editor.selection).slice(0, MOST_CHARACTERS),
  };
}

function diagnostics(wanted?: vscode.Uri) {
  const all: [vscode.Uri, readonly vscode.Diagnostic[]][] = wanted
    ? [[wanted, vscode.languages.getDiagnostics(wanted)]]
    : vscode.languages.getDiagnostics();
  return all.flatMap(([uri, problems]) =>
    problems.map(problem => ({
      path: shown(uri),
      line: problem.range.start.line + 1,
      severity: severities[problem.severity],
      message: problem.message,
      source: problem.source,
    })),
  );
}

async function outline(document: vscode.TextDocument) {
  const found = await vscode.commands.executeCommand<(vscode.DocumentSymbol | vscode.SymbolInformation)[] | undefined>(
    "vscode.executeDocumentSymbolProvider",
    document.uri,
  );
  const flat = (symbols: vscode.DocumentSymbol[], container?: string): object[] =>
    symbols.flatMap(symbol => [
      { ...about(symbol.name, symbol.kind, symbol.range, container), path: shown(document.uri) },
      ...flat(symbol.children, symbol.name),
    ]);
  const symbols = found ?? [];
  return symbols.every(symbol => "children" in symbol)
    ? flat(symbols as vscode.DocumentSymbol[])
    : symbols.map(symbol => placed(symbol as vscode.SymbolInformation));
}

async function named(query: string) {
  const found = await vscode.commands.executeCommand<vscode.SymbolInformation[] | undefined>(
    "vscode.executeWorkspaceSymbolProvider",
    query,
  );
  return (found ?? []).map(placed);
}

function placed(symbol: vscode.SymbolInformation): object {
  return {
    ...about(symbol.name, symbol.kind, symbol.location.range, symbol.containerName),
    path: shown(symbol.location.uri),
  };
}

function about(name: string, kind: vscode.SymbolKind, range: vscode.Range, container?: string) {
  return {
    name,
    kind: vscode.SymbolKind[kind]?.toLowerCase(),
    container: container || undefined,
    first: range.start.line + 1,
    last: range.end.line + 1,
  };
}

/** An open document or a file of the workspace. Nothing else is read from the disk. */
async function find(given: Record<string, unknown>): Promise<vscode.TextDocument> {
  if (typeof given.path !== "string") {
    const current = vscode.window.activeTextEditor?.document;
    if (!current) throw new Error("no file is open in the editor; give a `path`");
    return current;
  }
  const uri = await locate(given.path);
  const open = vscode.workspace.textDocuments.find(document => document.uri.toString() === uri.toString());
  if (open) return open;
  if (!vscode.workspace.getWorkspaceFolder(uri))
    throw new Error(`\`${given.path}\` is neither open in the editor nor in its workspace`);
  return vscode.workspace.openTextDocument(uri).then(undefined, () => {
    throw new Error(`\`${given.path}\` cannot be read as text`);
  });
}

/** A relative name is looked for in all folders of the workspace. With several, it may begin with the name of one. */
async function locate(name: string): Promise<vscode.Uri> {
  if (/^[a-z][a-z0-9+.-]+:/i.test(name) && !/^[a-z]:[\\/]/i.test(name)) return vscode.Uri.parse(name);
  if (name.startsWith("/") || /^[a-z]:[\\/]/i.test(name)) return vscode.Uri.file(name);
  const folders = vscode.workspace.workspaceFolders ?? [];
  const [first = "", ...rest] = name.split(/[\\/]/);
  const within = folders.filter(folder => folder.name === first && rest.length > 0);
  const places = [
    ...folders.map(folder => vscode.Uri.joinPath(folder.uri, name)),
    ...within.map(folder => vscode.Uri.joinPath(folder.uri, ...rest)),
  ];
  for (const place of places) {
    const isThere = await vscode.workspace.fs.stat(place).then(
      () => true,
      () => false,
    );
    if (isThere) return place;
  }
  return places[0] ?? vscode.Uri.file(name);
}

function shown(uri: vscode.Uri): string {
  return uri.scheme === "file" ? uri.fsPath : uri.toString();
}
