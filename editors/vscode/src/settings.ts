/** The settings of the sidecar in VS Code. `config.toml` applies to what is not set here. */

/** Settings that are sent to the sidecar, by their names below `mcpSidecar`. */
export const FORWARDED = [
  "audit",
  "auditKeepDays",
  "secrets",
  "files.project",
  "files.local",
  "servers.startupTimeout",
  "servers.timeout",
  "servers.maxTimeout",
  "servers.pingInterval",
  "servers.attempts",
  "servers.tcpHosts",
  "servers.logLevel",
  "approvals.timeout",
  "log.level",
  "log.days",
  "editor.hideLenses",
] as const;

/**
 * The object that is sent to the sidecar in `initialize` and in `workspace/didChangeConfiguration`. `null` stands for a
 * setting that is not set, and resets an earlier value.
 */
export function forwarded(value: (name: string) => unknown): Record<string, unknown> {
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
