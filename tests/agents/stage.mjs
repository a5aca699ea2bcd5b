// Everything that one cell of the table uses: a home, a project, a model, and the processes that it started. Nothing of the
// user is read or changed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { AGENTS } from "./agents.mjs";
import { Editor } from "./editor.mjs";
import { prompt, startModel } from "./model.mjs";

export class Stage {
  #program;
  #bin;
  #editors = [];
  #agents = new Set();

  /** The stage of the agent `name`, whose program is in the folder `bin`; `program` is that of mcp-sidecar. */
  static async open(name, program, bin) {
    // Short, because the path of a socket has at most 107 bytes.
    const place = fs.mkdtempSync(path.join(os.tmpdir(), "agents-"));
    for (const folder of ["home", "project", "config", "state", "run"]) {
      fs.mkdirSync(path.join(place, folder), { mode: 0o700 });
    }
    return Stage.#at(place, name, program, bin);
  }

  /** The same place with another agent. Close this stage last. */
  async beside(name) {
    const other = await Stage.#at(this.place, name, this.#program, this.#bin);
    other.isGuest = true;
    return other;
  }

  static async #at(place, name, program, bin) {
    const stage = new Stage();
    stage.name = name;
    stage.place = place;
    stage.agent = AGENTS[name];
    stage.#program = program;
    stage.#bin = bin;
    stage.model = await startModel();
    stage.env = {
      PATH: `${bin}${path.delimiter}${process.env.PATH}`,
      HOME: stage.path("home"),
      USER: os.userInfo().username,
      LANG: "C.UTF-8",
      TERM: "dumb",
      MCP_SIDECAR_CONFIG_DIR: stage.path("config"),
      MCP_SIDECAR_STATE_DIR: stage.path("state"),
      MCP_SIDECAR_RUNTIME_DIR: stage.path("run"),
      MCP_SIDECAR_MANAGED_CONFIG: stage.path("managed.json"),
      // An agent may run this, but the editor here was not started by it.
      MCP_SIDECAR_TEST_ROOT: String(process.pid),
    };
    stage.context = {
      home: stage.path("home"),
      project: stage.path("project"),
      url: stage.model.url,
    };
    stage.servers({});
    stage.agent.configure(stage.context);
    stage.before = files(stage.path("home"));
    await stage.shell("setup", name, "--user");
    return stage;
  }

  path(name) {
    return path.join(this.place, name);
  }

  /** The servers of the user, beside the built-in one, whose `take_note` asks and whose `echo` does not. */
  servers(others, more = {}) {
    const demo = {
      command: this.#program,
      args: ["demo-server"],
      tools: { echo: "allow-session", take_note: "require-approval" },
    };
    fs.writeFileSync(this.path("config/mcp.json"), JSON.stringify({ servers: { demo, ...others }, ...more }));
  }

  /** Sets up the hooks of the agent, and the rules for its own tools. */
  async hooks(rules) {
    await this.shell("setup", this.name, "--hooks");
    this.isHooked = true;
    this.servers({}, { agentTools: { [this.agent.hooks.name]: rules } });
  }

  async editor(folder = this.path("project")) {
    const editor = await Editor.open(this.#program, folder, this.env);
    this.#editors.push(editor);
    return editor;
  }

  /** Runs the agent with a prompt that asks for these calls. Resolves with everything that it printed. */
  prompt(steps, folder = this.path("project")) {
    const args = this.isHooked ? (this.agent.hooks.args ?? this.agent.args) : this.agent.args;
    return this.#start(args(prompt(steps), this.context), folder);
  }

  /** The MCP servers of the agent, as it lists them itself. */
  list() {
    return this.#start(this.agent.list, this.path("project"));
  }

  #start(args, folder) {
    const env = { ...this.env, ...this.agent.env(this.context) };
    const child = spawn(path.join(this.#bin, this.agent.program), args, {
      cwd: folder,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    this.#agents.add(child);
    let printed = "";
    for (const output of [child.stdout, child.stderr]) {
      output.setEncoding("utf8").on("data", data => {
        printed += data;
      });
    }
    return new Promise(resolve => child.once("close", () => resolve(printed)));
  }

  /** Kills the agents that are running, with all processes that they started. */
  killAgents() {
    for (const child of this.#agents) {
      if (child.exitCode === null && child.signalCode === null) {
        try {
          process.kill(-child.pid, "SIGKILL");
        } catch {
          // It has just ended.
        }
      }
    }
  }

  /** The process ids of the engines of this stage. */
  engines() {
    return fs.readdirSync("/proc").filter(name => /^\d+$/.test(name) && this.#isEngine(name));
  }

  #isEngine(pid) {
    const read = name => {
      try {
        return fs.readFileSync(`/proc/${pid}/${name}`, "utf8").split("\0");
      } catch {
        return [];
      }
    };
    const isCopy = read("comm")[0] === "mcp-guardian\n"; // The guardians of an engine have its arguments.
    const isOurs = read("environ").includes(`MCP_SIDECAR_RUNTIME_DIR=${this.path("run")}`);
    return read("cmdline")[1] === "engine" && isOurs && !isCopy;
  }

  /** Kills the engine of this stage, and waits until it is gone. Returns its process id. */
  async killEngine() {
    const [engine] = this.engines();
    assert.ok(engine, "no engine is running");
    process.kill(Number(engine), "SIGKILL");
    // Before that, a call may still reach it, and is then rightly lost.
    while (fs.existsSync(`/proc/${engine}`)) {
      await new Promise(resolve => setTimeout(resolve, 20));
    }
    return engine;
  }

  /** Runs a command of mcp-sidecar in the project. Resolves with what it printed. */
  async shell(...args) {
    const child = spawn(this.#program, args, {
      cwd: this.path("project"),
      env: this.env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    let printed = "";
    child.stdout.setEncoding("utf8").on("data", data => {
      printed += data;
    });
    const code = await new Promise(resolve => child.once("close", resolve));
    assert.equal(code, 0, `mcp-sidecar ${args.join(" ")} failed`);
    return printed;
  }

  async close() {
    this.killAgents();
    await Promise.all(this.#editors.map(editor => editor.close()));
    this.model.close();
    if (this.isGuest) {
      return;
    }
    fs.rmSync(this.place, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }
}

/** The texts of all files in a folder. */
const files = folder =>
  fs
    .readdirSync(folder, { recursive: true })
    .map(name => path.join(folder, name))
    .filter(file => fs.statSync(file).isFile())
    .map(file => [file, fs.readFileSync(file, "utf8")]);
