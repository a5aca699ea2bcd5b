/** Which files are config files, by name. The sidecar decides; this only avoids needless requests. */

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import * as path from "node:path";

const NAMES = ["mcp.json", ".mcp.json", "mcp.local.json"];
/** Files that VS Code reads too: it starts their servers itself, and shows its own lenses in them. */
export const SHARED = [".vscode/mcp.json", ".mcp.json"];

/** @param extra the names that the settings `files.project` and `files.local` add */
export function isConfigFile(file: string, extra: readonly string[] = []): boolean {
  return endsWithOne(file, [...NAMES, ...extra]);
}

/** Patterns for the same files. Only these are sent to the sidecar. */
export function configPatterns(extra: readonly string[] = []): string[] {
  return [...NAMES, ...extra].map(name => `**/${name}`);
}

/** Whether VS Code shows its own lenses to start and stop servers in this file. */
export function isSharedFile(file: string): boolean {
  return endsWithOne(file, SHARED);
}

/** Whether VS Code itself completes and checks the keys of this file. */
export function hasOwnSchema(file: string): boolean {
  return endsWithOne(file, [".vscode/mcp.json"]);
}

function endsWithOne(file: string, names: readonly string[]): boolean {
  const plain = file.replaceAll("\\", "/");
  return names.some(name => plain === name || plain.endsWith(`/${name}`));
}

/** Whether there is a config file in one of these folders or for the user. */
export function hasConfig(folders: readonly string[], environment: NodeJS.ProcessEnv): boolean {
  const home = environment.XDG_CONFIG_HOME ?? path.join(homedir(), ".config");
  const user = path.join(environment.MCP_SIDECAR_CONFIG_DIR ?? path.join(home, "mcp-sidecar"), "mcp.json");
  const names = [...NAMES, ".vscode/mcp.json", ".cursor/mcp.json"];
  const files = [user, ...folders.flatMap(folder => names.map(name => path.join(folder, name)))];
  return files.some(file => existsSync(file));
}
