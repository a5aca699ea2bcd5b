// An empty machine for one journey: a home without files, a project, and only the programs of the system on the PATH. It
// counts what the user does, and how long it takes until the first useful call.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Terminal } from "./terminal.mjs";

/** No person answers faster: questions and forms ignore keys for a moment after they appeared. */
const READ_MS = 1_000;
/** How long the engine may run after the last program that uses it. */
const END_MS = 60_000;
/** How long an agent may run after its terminal is closed. */
const AGENT_MS = 3_000;
const SYSTEM = ["/usr/local/bin", "/usr/bin", "/bin"];

export class Machine {
  /** What the user did, in their words. */
  steps = [];
  #terminals = [];
  #began;
  seconds;

  constructor({ name, network, gitConfig, pictures, agents }) {
    Object.assign(this, { name, network, pictures, agent: program => path.join(agents, program) });
    // Short, because the path of a socket has at most 107 bytes.
    this.place = fs.mkdtempSync(path.join(os.tmpdir(), "journey-"));
    for (const folder of ["home", "project", "run", "tools", "etc/nvim"]) {
      fs.mkdirSync(this.path(folder), { recursive: true, mode: 0o700 });
    }
    this.env = {
      HOME: this.path("home"),
      USER: os.userInfo().username,
      PATH: [this.path("home/.npm-global/bin"), this.path("tools"), ...SYSTEM].join(path.delimiter),
      SHELL: "/bin/bash",
      XDG_RUNTIME_DIR: this.path("run"),
      XDG_CONFIG_DIRS: this.path("etc"),
      // The internet of this machine.
      npm_config_registry: network.url,
      npm_config_prefix: this.path("home/.npm-global"),
      npm_config_update_notifier: "false",
      GIT_CONFIG_GLOBAL: gitConfig,
    };
  }

  path(name) {
    return path.join(this.place, name);
  }

  write(name, text) {
    fs.mkdirSync(path.dirname(this.path(name)), { recursive: true });
    fs.writeFileSync(this.path(name), typeof text === "string" ? text : JSON.stringify(text, undefined, 2));
  }

  read(name) {
    return fs.readFileSync(this.path(name), "utf8");
  }

  /** Programs that the user already has. */
  has(programs) {
    for (const [name, program] of Object.entries(programs)) {
      fs.writeFileSync(this.path(`tools/${name}`), `#!/bin/sh\nexec "${program}" "$@"\n`, { mode: 0o755 });
    }
  }

  terminal(options = {}) {
    const terminal = new Terminal({ folder: this.path("project"), env: this.env, ...options });
    this.#terminals.push(terminal);
    return terminal;
  }

  /** Counts a step of the user. The first one starts the clock. */
  did(step) {
    this.#began ??= performance.now();
    this.steps.push(step);
  }

  /** The user types a line, and sees what it leads to. */
  async line(terminal, line, shown, step = `\`${line}\``) {
    this.did(step);
    terminal.type(line);
    terminal.press("Enter");
    await terminal.until(shown);
  }

  /**
   * The user asks an agent for something, and again if it has not connected its servers yet. Some agents take a text that
   * arrives at once for a paste, and wait.
   */
  async request(terminal, text, shown, again) {
    this.did("ask for something");
    for (const notYet = /NO TOOL/; ; ) {
      await new Promise(resolve => setTimeout(resolve, READ_MS));
      terminal.type(text);
      await terminal.until(new RegExp(text.slice(-12)));
      terminal.press("Enter");
      await terminal.until(new RegExp(`${shown.source}|${notYet.source}`));
      if (!notYet.test(terminal.screen())) {
        return;
      }
      terminal.type(again);
      terminal.press("Enter");
      await terminal.gone(notYet);
    }
  }

  /** The user presses a key. They read what is on the screen before that. */
  key(terminal, key, shown, step) {
    return this.keys(terminal, [key], shown, step);
  }

  async keys(terminal, keys, shown, step) {
    this.did(step);
    await new Promise(resolve => setTimeout(resolve, READ_MS));
    for (const key of keys) {
      terminal.press(key);
    }
    await terminal.until(shown);
  }

  /** The first useful call has been made. */
  useful() {
    this.seconds = (performance.now() - this.#began) / 1000;
  }

  picture(screen, name) {
    return this.pictures && screen.picture(path.join(this.pictures, `journey-${this.name}-${name}.png`));
  }

  /** Ends everything that runs on this machine, and removes it. Some agents leave a process that outlives their terminal. */
  async close() {
    for (const terminal of this.#terminals) {
      terminal.close();
    }
    const began = Date.now();
    for (let left = this.#processes(); left.length > 0; left = this.#processes()) {
      const waited = Date.now() - began;
      if (waited > END_MS) {
        throw new Error(`${this.name}: processes are left: ${left.map(({ name }) => name).join(", ")}`);
      }
      for (const { id, name } of waited > AGENT_MS ? left : []) {
        if (!name.startsWith("mcp-")) {
          end(id);
        }
      }
      await new Promise(resolve => setTimeout(resolve, 100));
    }
    fs.rmSync(this.place, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }

  /** The programs that run with the home of this machine. */
  #processes() {
    return fs.readdirSync("/proc").flatMap(id => {
      try {
        const isOurs = fs.readFileSync(`/proc/${id}/environ`, "utf8").split("\0").includes(`HOME=${this.env.HOME}`);
        return isOurs ? [{ id: Number(id), name: fs.readFileSync(`/proc/${id}/comm`, "utf8").trim() }] : [];
      } catch {
        return []; // It has just ended, or it belongs to another user.
      }
    });
  }
}

function end(process_id) {
  try {
    process.kill(process_id, "SIGTERM");
  } catch {
    // It has just ended.
  }
}
