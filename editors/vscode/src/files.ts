/** Which files are config files, by their names. The sidecar knows better; this only keeps others out of its way. */

import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

const NAMES = ["mcp.json", ".mcp.json", "mcp.local.json"];
/** Those that VS Code reads as well, and puts its own lenses on. */
const SHARED = [".vscode/mcp.json", ".mcp.json"];

/** @param extra the names that the settings `files.project` and `files.local` add */
export function isConfigFile(file: string, extra: readonly string[] = []): boolean {
  return endsWithOne(file, [...NAMES, ...extra]);
}

/** Whether VS Code has lenses of its own for starting and stopping in this file. */
export function isSharedFile(file: string): boolean {
  return endsWithOne(file, SHARED);
}

function endsWithOne(file: string, names: readonly string[]): boolean {
  const plain = file.replaceAll("\\", "/");
  return names.some(name => plain === name || plain.endsWith(`/${name}`));
}

/** Whether there is anything for the sidecar to do: a config file of one of these folders, or one of the user's. */
export async function hasConfig(folders: readonly string[], environment: NodeJS.ProcessEnv): Promise<boolean> {
  const home = environment.XDG_CONFIG_HOME ?? path.join(homedir(), ".config");
  const user = path.join(environment.MCP_SIDECAR_CONFIG_DIR ?? path.join(home, "mcp-sidecar"), "mcp.json");
  const names = [...NAMES, ".vscode/mcp.json", ".cursor/mcp.json"];
  const files = [user, ...folders.flatMap(folder => names.map(name => path.join(folder, name)))];
  const found = await Promise.all(
    files.map(file =>
      stat(file).then(
        () => true,
        () => false,
      ),
    ),
  );
  return found.includes(true);
}
