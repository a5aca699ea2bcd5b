/** Commands for config files: add, move and remove servers, import and export them, and check the setup. */

import { commands, Uri, window } from "vscode";
import { showText, textUri } from "../documents";
import type { Check, Dialect, EditedFiles, FileScope, Reload, Template } from "../protocol";
import { plural, quoted, sentence } from "../text";
import { type App, confirm, register, type ServerArgument, serverOf } from "./app";
import { FILE_SCOPES } from "./servers";

const DIALECTS: readonly Dialect[] = [
  "vscode",
  "claude",
  "claude-desktop",
  "cursor",
  "windsurf",
  "zed",
  "cline",
  "codex",
  "mcphub",
];
const ABOUT: Partial<Record<FileScope, string>> = {
  project: "for everyone who works on this project",
  local: "for you, in this project",
  user: "for you, everywhere",
  session: "in memory, until the sidecar stops",
};

export function fileCommands(app: App): void {
  const { sidecar } = app;
  register(app, "mcpSidecar.server.add", () => add(app));

  register(app, "mcpSidecar.server.remove", async (given: ServerArgument) => {
    const name = await serverOf(app, given, "Remove which server from its file?", one => one.file !== undefined);
    const server = name ? sidecar.state.server(name) : undefined;
    if (
      server &&
      (await confirm(
        `Remove the server ${quoted(server.name)}?`,
        `From ${server.file ?? `scope ${server.scope}`}`,
        "Remove",
      ))
    ) {
      unsaved(await sidecar.command("mcp.server.remove", { server: server.name, scope: server.scope as FileScope }));
    }
  });

  register(app, "mcpSidecar.server.move", async (given: ServerArgument) => {
    const name = await serverOf(app, given, "Move which server to another file?", one => one.file !== undefined);
    const server = name ? sidecar.state.server(name) : undefined;
    const to = server && (await scope(`Move ${quoted(server.name)} to which file?`, one => one !== server.scope));
    if (to) {
      unsaved(await sidecar.command("mcp.server.move", { server: server.name, from: server.scope as FileScope, to }));
    }
  });

  register(app, "mcpSidecar.config.reload", async () => {
    const reload = await sidecar.command("mcp.config.reload", {});
    window.setStatusBarMessage(`$(check) ${reloadText(reload)}`, 5_000);
  });

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
      const { text } = await sidecar.command("mcp.config.export", { to });
      await showText(to === "codex" ? "config.toml" : `${to}.json`, text);
    }
  });

  register(app, "mcpSidecar.doctor", async () => {
    const { checks } = await sidecar.command("mcp.doctor", {});
    const page = textUri("MCP Sidecar: doctor.md", doctorText(checks));
    await commands.executeCommand("markdown.showPreview", page);
  });
}

async function add(app: App): Promise<void> {
  const { templates } = await app.sidecar.command("mcp.templates", {});
  const own = {
    label: "$(edit) Another program or address…",
    description: "",
    detail: "",
    template: undefined,
  };
  const items = templates.map(template => ({
    label: template.title,
    description: template.id,
    detail: template.description,
    template: template as Template | undefined,
  }));
  const chosen = await window.showQuickPick([own, ...items], { placeHolder: "Add which server?", matchOnDetail: true });
  if (!chosen) {
    return;
  }
  const config = chosen.template?.config ?? (await describe());
  const server = config ? await askName(chosen.template?.id ?? "") : undefined;
  const into = server && (await scope(`Add ${quoted(server)} to which file?`));
  if (into) {
    const inputs = chosen.template?.inputs ?? [];
    unsaved(await app.sidecar.command("mcp.server.add", { server, config, inputs, scope: into }));
    await commands.executeCommand("mcpSidecar.server.reveal", { server });
  }
}

function askName(value: string): Thenable<string | undefined> {
  return window.showInputBox({
    title: "Add a server",
    prompt: "Its name",
    value,
    validateInput: text =>
      /^[\w-]{1,64}$/.test(text) && !text.includes("__") ? undefined : "Use letters, digits, `-` and single `_`.",
  });
}

async function describe(): Promise<object | undefined> {
  const text = await window.showInputBox({
    title: "Add a server",
    prompt: "A program with its arguments, or an address",
    placeHolder: "npx -y @modelcontextprotocol/server-filesystem .",
  });
  return text ? definition(text) : undefined;
}

/** What was typed, as an entry of `mcp.json`. Quotes group words, as in a shell. */
export function definition(text: string): object | undefined {
  const words = [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(found => found[1] ?? found[2] ?? found[3] ?? "");
  const [command, ...args] = words;
  if (!command) {
    return undefined;
  }
  return /^https?:\/\//.test(command) ? { url: command } : { command, ...(args.length > 0 && { args }) };
}

/** A file, by its scope. */
export async function scope(
  question: string,
  fits: (scope: FileScope) => boolean = () => true,
  more: FileScope[] = [],
) {
  const items = [...more, ...FILE_SCOPES].filter(fits).map(one => ({ label: one, description: ABOUT[one] ?? "" }));
  return (await window.showQuickPick(items, { placeHolder: question }))?.label;
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
    await app.sidecar.command("mcp.config.import", { from, scope: into });
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
