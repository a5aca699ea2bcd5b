// Two real agents, Claude Code and Codex, work at once in two git worktrees, in the terminals of one window, and everything that
// they want to do is answered there. Their models are servers on loopback (tests/agents/model.mjs), which want the calls below.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { Stage } from "../../../tests/agents/stage.mjs";
import { gone, processesWith } from "./sandbox.mjs";
import { openPage } from "./ui/support.mjs";

const LOGIN = "Add a test for the login, and note what is left to do.";
const SEARCH = "Run the tests of the search.";

/** A repository with two worktrees, and two agents that are set up with hooks. */
export async function makeSupervised() {
  const agents = execFileSync(new URL("../../../scripts/get-agents", import.meta.url).pathname, ["--quiet"]);
  const bin = path.join(String(agents).trim().replace("MCP_AGENTS=", ""), "node_modules/.bin");
  const claude = await Stage.open("claude", path.resolve(process.env.MCP_SIDECAR_BINARY), bin);
  const codex = await claude.beside("codex");
  for (const stage of [claude, codex]) {
    await stage.shell("setup", stage.name, "--hooks");
  }
  const shop = claude.path("shop");
  fs.renameSync(claude.path("project"), shop);
  const write = (name, text) => {
    fs.mkdirSync(path.dirname(path.join(shop, name)), { recursive: true });
    fs.writeFileSync(path.join(shop, name), text);
  };
  write("notes.md", "# The shop\n\n- `login.py` checks who a customer is.\n- `search.py` finds what they want.\n");
  write("login.py", 'def login(name, password):\n    return (name, password) == ("ada", "countess")\n');
  write("test_login.py", 'from login import login\n\n\ndef test_ada():\n    assert login("ada", "countess")\n');
  write("search.py", "def search(words, goods):\n    return [one for one in goods if words in one]\n");
  write(
    "test_search.py",
    'from search import search\n\nassert search("tea", ["teapot", "cup"]) == ["teapot"]\nprint("1 passed")\n',
  );
  const git = (...args) => execFileSync("git", args, { cwd: shop, env: claude.env });
  git("init", "--quiet", "--initial-branch", "main");
  git("add", ".");
  git("-c", "user.name=Ada", "-c", "user.email=ada@example.test", "commit", "--quiet", "-m", "The shop");
  git("worktree", "add", "--quiet", "-b", "login", claude.path("shop-login"));
  git("worktree", "add", "--quiet", "-b", "search", claude.path("shop-search"));
  const ask = "require-approval";
  claude.servers({}, { agentTools: { "claude-code": { Bash: ask, Edit: ask }, codex: { Bash: ask } } });
  const file = path.join(claude.path("shop-login"), "test_login.py");
  const before = 'def test_ada():\n    assert login("ada", "countess")\n';
  const after = `${before}\n\ndef test_wrong_password():\n    assert not login("ada", "duchess")\n`;
  const edit = { file_path: file, old_string: before, new_string: after };
  const note = { text: "Login: a locked account needs a test, too." };
  claude.model.plans.push([
    LOGIN,
    [
      ["take_note", note],
      ["Read", { file_path: file }],
      ["Edit", edit],
    ],
    "The test is in test_login.py, and the note is saved.",
  ]);
  codex.model.plans.push([
    SEARCH,
    [
      ["exec_command", { cmd: "python3 test_search.py" }],
      ["take_note", { text: "Search: 1 test passes." }],
    ],
    "1 test passes.",
  ]);
  const { url } = codex.context;
  fs.appendFileSync(
    claude.path("home/.codex/config.toml"),
    `\n[model_providers.fake]\nname = "fake"\nbase_url = "${url}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\nsupports_websockets = false\n`,
  );
  const config = claude.path("home/.codex/config.toml");
  fs.writeFileSync(config, `model = "gpt-5"\nmodel_provider = "fake"\n${fs.readFileSync(config, "utf8")}`);
  fs.writeFileSync(claude.path("home/.bashrc"), "PS1='\\[\\e[1;34m\\]\\W\\[\\e[0m\\] $ '\n");
  fs.mkdirSync(claude.path("bin"));
  fs.symlinkSync(path.resolve(process.env.MCP_SIDECAR_BINARY), claude.path("bin/mcp-sidecar"));
  const PATH = `${claude.path("bin")}${path.delimiter}${claude.env.PATH}`;
  const env = { ...claude.env, PATH, TERM: undefined, SHELL: "/bin/bash" };
  return {
    workspace: shop,
    env,
    windowEnv: { ...env, ...claude.agent.env(claude.context), ...codex.agent.env(codex.context) },
    settings: {
      "window.title": "shop",
      // Its text is on the page.
      "terminal.integrated.gpuAcceleration": "off",
      "terminal.integrated.initialHint": false,
      "terminal.integrated.fontSize": 12,
      "terminal.integrated.tabs.enabled": false,
      // The models listen on ports.
      "remote.autoForwardPorts": false,
    },
    file: name => path.join(shop, name),
    async close() {
      await codex.close();
      await claude.close();
      await gone(() => processesWith(`MCP_SIDECAR_STATE_DIR=${claude.path("state")}`));
    },
  };
}

/** The terminal that has the prompt of this folder. */
const pane = (vs, folder) => vs.page.locator(".terminal-wrapper", { hasText: `${folder} $` });

/** Types commands into the terminal that `title` opens, in a folder beside the workspace. */
async function terminal(vs, title, folder, command) {
  const all = vs.page.locator(".terminal-wrapper .xterm-rows");
  const before = await all.count();
  await vs.command(title);
  await all.nth(before).getByText("$").first().waitFor();
  // Once more if the command that opened it still had the keyboard.
  while (!(await pane(vs, folder).count())) {
    await vs.page.keyboard.type(`cd ../${folder}\n`);
    await vs.page.waitForTimeout(1_000);
  }
  await vs.page.keyboard.type("clear\n");
  await vs.page.waitForTimeout(1_000);
  await vs.page.keyboard.type(`${command}\n`);
}

/** Opens the question with `text` by its row in the view Approvals. */
async function open(vs, row, text) {
  const page = await openPage(vs, vs.treeItem(row), text);
  await page.locator("body.live").waitFor();
  await vs.page.locator(".notification-toast").first().waitFor({ state: "detached" });
}

/** The pictures in order. Each scene starts where the one before it ends. */
export const supervised = {
  async "two-agents-1-call"({ vs, press }) {
    await vs.command("MCP Sidecar: Focus on Agents View");
    // Wide enough for what agents are doing.
    await vs.page.mouse.move(349, 450);
    await vs.page.mouse.down();
    await vs.page.mouse.move(500, 450, { steps: 5 });
    await vs.page.mouse.up();
    const claude = `claude -p "${LOGIN}" --allowedTools mcp__mcp-sidecar Read`;
    await terminal(vs, "Terminal: Create New Terminal", "shop-login", claude);
    const codex = `codex exec --sandbox workspace-write --dangerously-bypass-hook-trust "${SEARCH}"`;
    await terminal(vs, "Terminal: Split Terminal", "shop-search", codex);
    await vs.status("2 waiting");
    await open(vs, "take_note", "locked account");
    return () => press("locked account", "Allow once");
  },

  async "two-agents-2-command"({ vs, press }) {
    await open(vs, "python3 test_search.py", "It runs one program");
    return () => press("It runs one program", "Allow once");
  },

  async "two-agents-3-edit"({ vs }) {
    await vs.status("2 waiting");
    await open(vs, "test_login.py", "test_wrong_password");
  },

  async "two-agents-4-board"({ vs, press }) {
    await vs.command("Terminal: Create New Terminal");
    await pane(vs, "shop").last().waitFor();
    await vs.page.waitForTimeout(1_000);
    await vs.page.keyboard.type("clear; mcp-sidecar agents\n");
    await vs.page.locator(".xterm-rows").getByText("waits for you").first().waitFor();
    return async () => {
      await press("test_wrong_password", "Allow once");
      await open(vs, "take_note", "1 test passes");
      await press("1 test passes", "Allow once");
    };
  },

  async "two-agents-5-log"({ vs }) {
    await vs.treeItem("Edit").waitFor();
    await vs.page.locator(".terminal-wrapper.active").last().click();
    await vs.page.keyboard.type("clear; mcp-sidecar calls\n");
    await vs.page.locator(".xterm-rows").getByText("OUTCOME").last().waitFor();
    await openPage(vs, vs.treeItem("claude-code in shop-login"), "allow-once");
  },
};
