// A sandbox for tests: a copy of the example workspace, the binary, and separate folders for everything that the sidecar
// reads and writes. Files of the user are neither read nor changed.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { openVSCode } from "../../../scripts/vscode-drive.mjs";

export const extension = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const examples = path.resolve(extension, "../../examples/workspace");
/** How many lines of the log a failed test shows. */
const LOG_LINES = 20;

/** @param {{ servers?: object, policy?: object }} [config] the user's config; its servers need no trust */
export function makeSandbox(config) {
  const binary = required("MCP_SIDECAR_BINARY");
  // Short, because the path of a socket has at most 107 bytes.
  const place = fs.mkdtempSync(path.join(os.tmpdir(), "mcp-vscode-"));
  const at = name => path.join(place, name);
  for (const folder of ["bin", "config", "state", "run", "home"]) {
    fs.mkdirSync(at(folder), { mode: 0o700 });
  }
  fs.symlinkSync(path.resolve(binary), at("bin/mcp-sidecar"));
  fs.cpSync(examples, at("workspace"), { recursive: true });
  if (config) {
    fs.writeFileSync(at("config/mcp.json"), JSON.stringify(config, undefined, 2));
  }
  const env = {
    PATH: `${at("bin")}${path.delimiter}${process.env.PATH}`,
    HOME: at("home"),
    XDG_CONFIG_HOME: at("home/.config"),
    XDG_STATE_HOME: at("home/.state"),
    XDG_DATA_HOME: at("home/.data"),
    MCP_SIDECAR_BINARY: at("bin/mcp-sidecar"),
    MCP_SIDECAR_CONFIG_DIR: at("config"),
    MCP_SIDECAR_STATE_DIR: at("state"),
    MCP_SIDECAR_RUNTIME_DIR: at("run"),
    MCP_SIDECAR_MANAGED_CONFIG: at("managed.json"),
  };
  const agents = [];
  const end = async () => {
    for (const agent of agents.splice(0)) {
      agent.close();
    }
    await gone(() => processesWith(`MCP_SIDECAR_STATE_DIR=${at("state")}`));
  };
  return {
    workspace: at("workspace"),
    env,
    file: name => path.join(at("workspace"), name),
    /** The program, for settings that name it. */
    binary: at("bin/mcp-sidecar"),
    /** An MCP client outside the editor, such as Claude Code or Codex, in a folder of the workspace. */
    async agent(name, folder = "") {
      const agent = new Agent(at("bin/mcp-sidecar"), path.join(at("workspace"), folder), { ...process.env, ...env });
      agents.push(agent);
      await agent.initialize(name);
      return agent;
    },
    /** Runs `mcp-sidecar` in a shell of the user, and returns what it prints. */
    shell: (...args) =>
      execFileSync(at("bin/mcp-sidecar"), args, {
        cwd: at("workspace"),
        env: { ...process.env, ...env },
        encoding: "utf8",
      }),
    /** The end of what the sidecar has logged. */
    log() {
      const folder = at("state/logs");
      const files = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
      const lines = files.flatMap(file => fs.readFileSync(path.join(folder, file), "utf8").trimEnd().split("\n"));
      return `The sidecar's log ends with:\n${lines.slice(-LOG_LINES).join("\n")}`;
    },
    /** Processes of this sandbox, found by a variable in their environment. */
    processes: () => processesWith(`MCP_SIDECAR_STATE_DIR=${at("state")}`),
    /** Disconnects all agents, and waits until every process has ended. */
    end,
    async close() {
      await end();
      fs.rmSync(place, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    },
  };
}

/** The public server `everything`; `scripts/get-servers` installs it. */
export function everything() {
  return { command: required("MCP_SERVER_EVERYTHING") };
}

/** The public server for files, with access to the workspace. */
export function filesystem() {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the sidecar expands it.
  return { command: required("MCP_SERVER_FILESYSTEM"), args: ["${workspaceFolder}"] };
}

/** A path that `scripts/get-backends` prints. */
export function backend(name) {
  return required(name);
}

function required(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set; use scripts/test-vscode, which prepares what the tests need`);
  }
  return value;
}

/** A window on the workspace, with the extension as users install it: packed, with the sidecar inside. */
export function openWindow(sandbox, options = {}) {
  const env = { ...sandbox.env, MCP_SIDECAR_BINARY: undefined };
  return openVSCode({ workspace: sandbox.workspace, vsix: required("MCP_SIDECAR_VSIX"), env, ...options });
}

/** Waits until no process is left, and fails with those that are. */
export async function gone(processes, limitMs = 20_000) {
  const until = Date.now() + limitMs;
  for (let left = processes(); left.length > 0; left = processes()) {
    if (Date.now() > until) {
      throw new Error(`still there after ${limitMs} ms:\n${left.join("\n")}`);
    }
    await new Promise(resolve => setTimeout(resolve, 100));
  }
}

/** Processes with this variable in their environment. */
export function processesWith(mark) {
  return fs.readdirSync("/proc").flatMap(id => {
    try {
      const environment = /^\d+$/.test(id) ? fs.readFileSync(`/proc/${id}/environ`, "utf8") : "";
      const mine = environment.split("\0").includes(mark);
      return mine ? [`${id} ${fs.readFileSync(`/proc/${id}/cmdline`, "utf8").replaceAll("\0", " ")}`] : [];
    } catch {
      return []; // It has just ended, or belongs to another user.
    }
  });
}

/** Speaks MCP with `mcp-sidecar connect`. */
class Agent {
  #child;
  #waiting = new Map();
  #next = 1;

  constructor(program, cwd, env) {
    this.#child = spawn(program, ["connect"], { cwd, env, stdio: ["pipe", "pipe", "inherit"] });
    let rest = "";
    this.#child.stdout.setEncoding("utf8").on("data", data => {
      const lines = (rest + data).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines.filter(Boolean)) {
        this.#receive(JSON.parse(line));
      }
    });
    this.#child.once("exit", code => {
      for (const { reject } of this.#waiting.values()) {
        reject(new Error(`mcp-sidecar connect ended (${code})`));
      }
    });
  }

  async initialize(name) {
    const clientInfo = { name, version: "1.0.0" };
    await this.request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
    this.#send({ method: "notifications/initialized" });
  }

  request(method, params = {}) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send({ id, method, params });
    });
  }

  call(name, given = {}) {
    return this.request("tools/call", { name, arguments: given });
  }

  close() {
    this.#child.stdin.end();
  }

  #send(message) {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  #receive({ id, result, error }) {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) {
      waiting?.reject(Object.assign(new Error(error.message), { data: error.data }));
    } else {
      waiting?.resolve(result);
    }
  }
}
