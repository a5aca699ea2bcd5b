/** Commands for config files: add and edit servers, import and export them, and check the setup. */

import { commands, Uri, window, workspace } from "vscode";
import { showText, textUri } from "../documents";
import { failureOf } from "../errors";
import { showForm } from "../form/inputs";
import {
  type Check,
  type Commands,
  DIALECTS,
  type Dialect,
  type EditedFiles,
  type EditedServer,
  type FileScope,
  type Reload,
  type Remedy,
  type ServerForm,
  type ServerStatus,
} from "../protocol";
import { plural, quoted, sentence } from "../text";
import { type App, confirm, register, type ServerArgument, serverOf } from "./app";

/** The scopes that have a file. */
const FILE_SCOPES: readonly FileScope[] = ["project", "local", "user"];
const ABOUT: Partial<Record<FileScope, string>> = {
  project: "for everyone who works on this project",
  local: "for you, in this project",
  user: "for you, everywhere",
  session: "in memory, until the sidecar stops",
};

export function fileCommands(app: App): void {
  const { sidecar } = app;
  register(app, "mcpSidecar.server.add", () => add(app));
  register(app, "mcpSidecar.server.edit", async (given: ServerArgument) => {
    const editable = (one: ServerStatus) => one.actions.some(action => action.kind === "remove");
    const server = await serverOf(app, given, "Edit which server?", editable);
    if (server) {
      await serverForm(app, { server });
    }
  });

  register(app, "mcpSidecar.config.reload", () =>
    commands.executeCommand("mcpSidecar.perform", { command: "mcp.config.reload", arguments: {} }),
  );

  register(app, "mcpSidecar.config.open", async () => {
    const { files } = await sidecar.command("mcp.config", {});
    const items = files
      .filter(file => file.scope !== "managed" || file.exists)
      .map(file => ({
        label: `$(${file.exists ? (file.valid ? "json" : "error") : "new-file"}) ${file.path}`,
        description: file.scope,
        detail: file.exists ? file.servers.join(", ") || "no servers" : "does not exist yet",
        file,
      }));
    const chosen = await window.showQuickPick(items, { placeHolder: "Open which config file?" });
    if (chosen) {
      const uri = Uri.file(chosen.file.path);
      await window.showTextDocument(chosen.file.exists ? uri : uri.with({ scheme: "untitled" }));
    }
  });

  register(app, "mcpSidecar.config.import", () => importServers(app));

  register(app, "mcpSidecar.config.export", async () => {
    const to = await dialect("Export for which program?");
    if (to) {
      const { text, syntax } = await sidecar.command("mcp.config.export", { to });
      await showText(`${to}.${syntax}`, text);
    }
  });

  register(app, "mcpSidecar.doctor", async () => {
    const { checks } = await sidecar.command("mcp.doctor", {});
    const page = textUri("MCP Sidecar: doctor.md", doctorText(checks));
    await commands.executeCommand("markdown.showPreview", page);
  });
}

/** Adds a server: a template or a command line first, then its form. */
async function add(app: App): Promise<void> {
  const { templates } = await app.sidecar.command("mcp.templates", {});
  const own = {
    label: "$(edit) Another program or address…",
    description: "",
    detail: "",
    template: undefined,
  };
  const registry = { ...own, label: "$(search) Search the MCP registry…" };
  const items = templates.map(template => ({
    label: template.title,
    description: "",
    detail: template.description,
    template: template.id as string | undefined,
  }));
  const chosen = await window.showQuickPick([own, registry, ...items], {
    placeHolder: "Add which server?",
    matchOnDetail: true,
    ignoreFocusOut: true,
  });
  if (chosen?.template) {
    await serverForm(app, { template: chosen.template });
  } else if (chosen === registry) {
    await addFromRegistry(app);
  } else if (chosen) {
    const commandLine = await askCommandLine(app);
    if (commandLine !== undefined) {
      await serverForm(app, { commandLine });
    }
  }
}

/** Searches the registry, and shows the form of the server that the user picks. */
async function addFromRegistry(app: App): Promise<void> {
  const query = await window.showInputBox({
    title: "Search the MCP registry",
    placeHolder: "weather",
    ignoreFocusOut: true,
  });
  if (!query?.trim()) {
    return;
  }
  const { servers, notes } = await app.sidecar.command("mcp.registry.search", { query });
  const items = servers.map(server => ({
    label: server.name,
    description: [server.version, server.warning].filter(Boolean).join(" · "),
    detail: server.description,
  }));
  const placeHolder = [servers.length > 0 ? "Add which server?" : "No servers found", ...(notes ?? [])].join(" · ");
  const chosen = await window.showQuickPick(items, { placeHolder, matchOnDetail: true, ignoreFocusOut: true });
  if (chosen) {
    await serverForm(app, { registry: { name: chosen.label } });
  }
}

/** Shows the form of a new server or of one that is in a file, and writes what was entered. */
async function serverForm(app: App, source: ServerForm): Promise<void> {
  const { title, verb, fields, values, command } = await app.sidecar.command("mcp.server.form", source);
  const params = await showForm({
    title,
    fields,
    given: values,
    check: entered => app.sidecar.command("mcp.form.check", { server: source, values: entered }),
    verb,
    draft: `server:${JSON.stringify(source)}`,
  });
  if (params) {
    const server = await write(app, command, params as Commands["mcp.server.add"]["params"]);
    await commands.executeCommand("mcpSidecar.server.reveal", { server });
  }
}

/** Writes a server to its file, and says so. The message has a button for what the server needs now, such as trust. */
async function write(app: App, command: string, params: Commands["mcp.server.add"]["params"]): Promise<string> {
  let next: Remedy | undefined;
  app.attention.expect(params.server);
  try {
    const answer = (await app.sidecar.command(command as keyof Commands, params as never)) as EditedServer;
    const { name, file, remedy } = answer.server;
    next = remedy;
    void written(file, `${quoted(name)} is in`, answer, next);
    return name;
  } finally {
    if (!next) {
      app.attention.forget(params.server);
    }
  }
}

/** A line stays in its box until the sidecar can read it. */
function askCommandLine(app: App): Thenable<string | undefined> {
  const problem = (text: string) =>
    app.sidecar.command("mcp.server.form", { commandLine: text }).then(
      () => undefined,
      error => sentence(failureOf(error).message),
    );
  return window.showInputBox({
    title: "Add a server",
    prompt: "A program with its arguments, or an address",
    ignoreFocusOut: true,
    placeHolder: "npx -y @modelcontextprotocol/server-filesystem .",
    validateInput: problem,
  });
}

/**
 * Says which file was written, with a button for what the server needs now, and one that opens the file. Without a file, the
 * change is in memory only.
 */
export async function written(
  file: string | undefined,
  what: string,
  edited: EditedFiles = {},
  next?: Remedy,
): Promise<void> {
  if (!file) {
    return;
  }
  const open = "Open File";
  const pending = edited.unsaved?.length ? " Save the file to apply this change." : "";
  const text = `${what} ${workspace.asRelativePath(file)}.${pending}`;
  const chosen = await window.showInformationMessage(text, ...(next ? [next.title] : []), open);
  if (chosen === open) {
    await window.showTextDocument(Uri.file(file));
  } else if (next && chosen === next.title) {
    await commands.executeCommand("mcpSidecar.perform", next);
  }
}

/** A file, by its scope. */
export async function scope(
  question: string,
  fits: (scope: FileScope) => boolean = () => true,
  more: FileScope[] = [],
) {
  const items = [...more, ...FILE_SCOPES].filter(fits).map(one => ({ label: one, description: ABOUT[one] ?? "" }));
  return (await window.showQuickPick(items, { placeHolder: question, ignoreFocusOut: true }))?.label;
}

async function dialect(question: string) {
  return (await window.showQuickPick(DIALECTS, { placeHolder: question })) as Dialect | undefined;
}

async function importServers(app: App): Promise<void> {
  const from = await dialect("Import servers from which program?");
  const into = from && (await scope("Into which file?"));
  if (!into) {
    return;
  }
  const plan = await app.sidecar.command("mcp.config.import", { from, scope: into, dryRun: true });
  if (plan.imported.length === 0) {
    const why = Object.entries(plan.skipped).map(([name, reason]) => `${name}: ${reason}`);
    window.showInformationMessage(`Nothing to import from ${from}. ${why.join("; ")}`);
    return;
  }
  const notes = Object.entries(plan.notes).flatMap(([name, lines]) => lines.map(line => `${name}: ${line}`));
  const question = `Import ${plural(plan.imported.length, "server")} from ${from}?`;
  if (await confirm(question, [plan.imported.map(quoted).join(", "), ...notes].join("\n\n"), "Import")) {
    const { imported, path } = await app.sidecar.command("mcp.config.import", { from, scope: into });
    void written(path, `Imported ${plural(imported.length, "server")} into`);
  }
}

/** A file that is open in an editor is changed there, and the change applies once it is saved. */
export function unsaved({ unsaved: files = [] }: EditedFiles): void {
  if (files.length > 0) {
    window.setStatusBarMessage(`$(save) Save ${files.join(", ")} to apply this change`, 8_000);
  }
}

export function reloadText(reload: Reload): string {
  const parts = [
    reload.added.length > 0 && `added ${reload.added.join(", ")}`,
    reload.removed.length > 0 && `removed ${reload.removed.join(", ")}`,
    reload.changed.length > 0 && `restarted ${reload.changed.join(", ")}`,
    reload.policyOnly.length > 0 && `changed the levels of ${reload.policyOnly.join(", ")}`,
  ].filter(Boolean);
  return parts.length > 0 ? parts.join("; ") : "nothing changed";
}

export function doctorText(checks: readonly Check[]): string {
  const bad = checks.filter(check => !check.ok).length;
  const rows = checks.map(({ name, ok, message, fix }) => {
    const cell = (text: string) => text.replaceAll("|", "\\|").replace(/\s+/g, " ");
    return `| ${ok ? "✓" : "✗"} | ${cell(name)} | ${cell(message)}${fix ? ` **${sentence(cell(fix))}**` : ""} |`;
  });
  const head = bad > 0 ? plural(bad, "problem") : "No problems";
  return `# MCP Sidecar: doctor\n\n${head}.\n\n| | Check | Result |\n|---|---|---|\n${rows.join("\n")}\n`;
}
