/** Finds the `mcp-sidecar` program and checks that this extension supports its version. */

import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

/** The oldest supported version of the sidecar. */
export const OLDEST = "0.2.0";

export interface Binary {
  path: string;
  version: string;
  from: "setting" | "environment" | "bundled" | "PATH";
}

/** There is no program, so the user has to say where it is. */
export class NoProgram extends Error {
  readonly data = {
    remedy: { title: "Choose the Program…", command: "mcpSidecar.program.choose", arguments: {} },
  };
}

export interface SearchOptions {
  /** `mcpSidecar.server.path`. */
  setting: string | null | undefined;
  /** The folder of this extension. */
  extension: string;
  environment: NodeJS.ProcessEnv;
}

const PROGRAM = process.platform === "win32" ? "mcp-sidecar.exe" : "mcp-sidecar";
/** Printing the version takes milliseconds; another program may never exit. */
const PATIENCE_MS = 10_000;

/** The first program found: from the setting, the environment, this package, `PATH`. */
export async function find(options: SearchOptions): Promise<Binary> {
  const setting = options.setting?.trim();
  if (setting) {
    const named = expand(setting);
    // A relative path could mean the workspace, whose files may come from anyone.
    if (!path.isAbsolute(named)) {
      throw new Error(`the setting mcpSidecar.server.path must be an absolute path, found ${JSON.stringify(setting)}`);
    }
    if (!(await executable(named))) {
      throw new NoProgram(`cannot run ${named}, the program in the setting mcpSidecar.server.path`);
    }
    return check(named, "setting");
  }
  const override = options.environment.MCP_SIDECAR_BINARY;
  if (override) {
    return check(override, "environment");
  }
  const bundled = path.join(options.extension, "server", PROGRAM);
  if (await executable(bundled)) {
    return check(bundled, "bundled");
  }
  for (const folder of (options.environment.PATH ?? "").split(path.delimiter)) {
    const candidate = path.join(folder, PROGRAM);
    // For the same reason no relative entry is used.
    if (path.isAbsolute(folder) && (await executable(candidate))) {
      return check(candidate, "PATH");
    }
  }
  throw new NoProgram(
    "cannot find the program mcp-sidecar in this package or in PATH; set mcpSidecar.server.path to its path",
  );
}

async function check(program: string, from: Binary["from"]): Promise<Binary> {
  const said = await ask(program);
  const version = /^mcp-sidecar (\d+\.\d+\.\d+\S*)/.exec(said)?.[1];
  if (!version) {
    throw new Error(
      `${program} is not mcp-sidecar: asked for its version, it printed ${JSON.stringify(said.slice(0, 80))}`,
    );
  }
  if (older(version, OLDEST)) {
    throw new Error(`${program} is mcp-sidecar ${version}, but this extension needs ${OLDEST} or newer`);
  }
  return { path: program, version, from };
}

function ask(program: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, ["--version"], { timeout: PATIENCE_MS }, (error, stdout) => {
      if (error) {
        const why = error.killed ? `it did not answer within ${PATIENCE_MS / 1000} s` : error.message.split("\n")[0];
        reject(new Error(`${program} did not print its version: ${why}`));
      } else {
        resolve(stdout.trim());
      }
    });
  });
}

/** Whether version `one` is before `other`, by its three numbers. */
export function older(one: string, other: string): boolean {
  const numbers = (version: string) => version.split(/[-+]/, 1)[0]?.split(".").map(Number) ?? [];
  const [left, right] = [numbers(one), numbers(other)];
  for (let place = 0; place < 3; place++) {
    const difference = (left[place] ?? 0) - (right[place] ?? 0);
    if (difference !== 0) {
      return difference < 0;
    }
  }
  return false;
}

function expand(named: string): string {
  return named.startsWith("~/") ? path.join(homedir(), named.slice(2)) : named;
}

async function executable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
