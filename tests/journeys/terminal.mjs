// A terminal with a user in front of it: types, waits for what the screen shows, and takes pictures. It is a private tmux.
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const termShot = fileURLToPath(new URL("../../scripts/term-shot", import.meta.url));
const LOOK_MS = 20;

export class Terminal {
  #folder = fs.mkdtempSync(path.join(os.tmpdir(), "journey-tmux-"));
  #limit;

  /** Opens a shell in `folder` with exactly these variables. */
  constructor({ folder, env, columns = 100, rows = 30, limit = 60_000 }) {
    this.#limit = limit;
    const config = path.join(this.#folder, "conf");
    // Programs redraw slowly if they wait whether Escape begins a longer key.
    fs.writeFileSync(config, "set -g status off\nset -s escape-time 0\nset -g default-terminal tmux-256color\nset -ga terminal-overrides ',*:Tc'\n");
    const clean = Object.entries({ ...env, TERM: "tmux-256color", COLORTERM: "truecolor", LANG: "C.UTF-8", PS1: "$ " });
    const shell = ["env", "-i", ...clean.map(([name, value]) => `${name}=${value}`), "bash", "--norc", "--noprofile", "-i"];
    this.#tmux("-f", config, "new-session", "-d", "-x", String(columns), "-y", String(rows), "-c", folder, "--", ...shell);
    this.#tmux("resize-window", "-x", String(columns), "-y", String(rows));
  }

  #tmux(...words) {
    const made = spawnSync("tmux", ["-u", "-S", path.join(this.#folder, "socket"), ...words], { encoding: "utf8" });
    if (made.status !== 0) {
      throw new Error(`tmux ${words[0]}: ${made.stderr || made.error}`);
    }
    return made.stdout;
  }

  /** Types a text. */
  type(text) {
    this.#tmux("send-keys", "-l", "--", text);
  }

  /** Presses keys by their names in tmux. */
  press(...keys) {
    this.#tmux("send-keys", "--", ...keys);
  }

  screen() {
    return this.#tmux("capture-pane", "-p");
  }

  /** Waits until the screen matches. */
  until(pattern) {
    return this.#wait(() => pattern.test(this.screen()), `${pattern} is not on the screen`);
  }

  /** Waits until the screen no longer matches. */
  gone(pattern) {
    return this.#wait(() => !pattern.test(this.screen()), `${pattern} is still on the screen`);
  }

  async #wait(isDone, complaint) {
    for (const end = Date.now() + this.#limit; !isDone(); ) {
      if (Date.now() > end) {
        throw new Error(`${complaint} after ${this.#limit / 1000} s:\n${this.screen().trimEnd()}`);
      }
      await new Promise(resolve => setTimeout(resolve, LOOK_MS));
    }
  }

  /** Saves a picture of the screen. */
  picture(file) {
    const text = path.join(this.#folder, "screen.ansi");
    fs.writeFileSync(text, this.#tmux("capture-pane", "-p", "-e", "-N"));
    execFileSync(termShot, ["--render", text, "-o", file], { stdio: ["ignore", "ignore", "inherit"] });
  }

  close() {
    spawnSync("tmux", ["-S", path.join(this.#folder, "socket"), "kill-server"]);
    fs.rmSync(this.#folder, { recursive: true, force: true });
  }
}
