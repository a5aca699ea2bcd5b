/**
 * The settings of the sidecar in VS Code. `config.toml` applies to what is not set here.
 *
 * Files of a workspace may come from anyone, so a workspace cannot set anything that chooses a program, gives rights, or
 * changes how the user is asked. VS Code enforces that by the scopes in `package.json`; this file does not rely on
 * it, and reads what the user has set.
 */

import { workspace } from "vscode";

/** Settings that a workspace may set, once the user trusts it. All others are the user's own. */
export const BY_WORKSPACE = [
  "servers.startupTimeout",
  "servers.timeout",
  "servers.maxTimeout",
  "servers.pingInterval",
  "servers.attempts",
  "servers.logLevel",
  "editor.hideLenses",
];

/** Settings that are sent to the sidecar, by their names below `mcpSidecar`. */
const FORWARDED = [
  ...BY_WORKSPACE,
  "audit",
  "auditKeepDays",
  "secrets",
  "files.project",
  "files.local",
  "servers.tcpHosts",
  "approvals.timeout",
  "log.level",
  "log.days",
  "editor.ownFiles",
];

/** The names of config files that the user has added. */
export function configNames(): string[] {
  return ["files.project", "files.local"].flatMap(name => setting<string[]>(name) ?? []);
}

/** The user's value of a setting, or its default. */
export function setting<T>(name: string): T | undefined {
  const found = workspace.getConfiguration("mcpSidecar").inspect<T>(name);
  return found?.globalValue ?? found?.defaultValue;
}

/**
 * The object that is sent to the sidecar in `initialize` and in `workspace/didChangeConfiguration`. `null` stands for a
 * setting that is not set, and resets an earlier value.
 */
export function forwarded(value = valueToSend): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  for (const name of FORWARDED) {
    const parts = name.split(".");
    const key = parts.pop() as string;
    let at = settings;
    for (const part of parts) {
      at[part] ??= {};
      at = at[part] as Record<string, unknown>;
    }
    at[key] = value(name) ?? null;
  }
  return settings;
}

/**
 * Only what is set: a default here would override `config.toml`. The files that VS Code reads are known only here, so their
 * default is sent.
 */
function valueToSend(name: string): unknown {
  const found = workspace.getConfiguration("mcpSidecar").inspect(name);
  const byWorkspace =
    BY_WORKSPACE.includes(name) && workspace.isTrusted
      ? (found?.workspaceFolderValue ?? found?.workspaceValue)
      : undefined;
  return byWorkspace ?? found?.globalValue ?? (name === "editor.ownFiles" ? found?.defaultValue : undefined);
}
