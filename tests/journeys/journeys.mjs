// The journeys. What the user types or clicks is what the README and the pages in `docs` say; see `documented`.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { prompt, startModel } from "../agents/model.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const PROMPT = /^\$$/m;
/** What Neovim shows below the end of a file. */
const EMPTY_BUFFER = /^~\s*\n~\s*\n~\s*$/m;

/** What a page asks the user to do. A journey that no page describes is a mistake in the pages. */
function documented(page, pattern) {
  const found = pattern.exec(fs.readFileSync(path.join(root, page), "utf8"));
  if (!found) {
    throw new Error(`${page} does not say ${pattern}`);
  }
  return (found[1] ?? found[0]).trim();
}

/** Installs the program in a new shell, as the README says. */
async function install(machine) {
  const shell = machine.terminal();
  await shell.until(PROMPT);
  const command = documented("README.md", /^(npm install --global \S+)/m);
  await machine.line(shell, command, /added \d+ packages[^]*^\$$/m);
  return shell;
}

/** Sets up the project, as the README says. */
function init(machine, shell, shown) {
  return machine.line(shell, documented("README.md", /`(mcp-sidecar init)`/), shown);
}

/** A project without servers: the demo server is added and called. */
async function addDemo(machine, shell, shown) {
  await init(machine, shell, /Add a demo server/);
  await machine.line(shell, "", shown, "answer yes: add the demo server and call it");
}

/** Runs an agent that asks for one call, with a model on loopback. */
async function withModel(machine, use) {
  const model = await startModel();
  try {
    await use(model, prompt([["demo__add", { a: 19, b: 23 }]]));
  } finally {
    model.close();
  }
}

/** The plugin is installed: adds the demo server in Neovim and calls one of its tools, as the page says. */
async function demoInNeovim(machine, editor) {
  const page = "docs/editors/neovim.md";
  await machine.line(editor, documented(page, /`(:Mcp add demo)`/), /Add a server.*add the server/);
  await machine.key(editor, "Enter", /ap Trust/, "Enter: add the server of the form");
  machine.picture(editor, "trust");
  await machine.keys(editor, ["a", "p"], /is trusted/, "ap: trust it in this project");
  await machine.line(editor, documented(page, /`(:Mcp call demo\/roll_dice)`/), /Number of dice|"sides"/);
  await machine.key(editor, "Enter", /roll_dice.* ms/, "Enter: call the tool with the arguments of the form");
  machine.useful();
  machine.picture(editor, "result");
}

/** A machine with Neovim, where the release on GitHub is on loopback. */
function hasNeovim(machine, nvim, init) {
  machine.has({ nvim });
  machine.write("etc/nvim/sysinit.vim", `let g:mcp_sidecar = { "release_url": "${machine.network.url}/releases" }\n`);
  machine.write("home/.config/nvim/init.lua", init);
}

export const JOURNEYS = {
  neovim: {
    title: "Neovim with lazy.nvim",
    async run(machine, { nvim }) {
      const spec = documented("README.md", /add `(\{ "mcp-sidecar\/mcp-sidecar" \})` to lazy\.nvim/);
      machine.did(`add \`${spec}\` to the plugins`);
      hasNeovim(machine, nvim, lazy(spec));
      const editor = machine.terminal();
      await editor.until(PROMPT);
      await machine.line(editor, "nvim", /Installed \(1\)[^]*mcp-sidecar/);
      machine.picture(editor, "installed");
      await machine.key(editor, "q", EMPTY_BUFFER, "q: close the window of lazy.nvim");
      await demoInNeovim(machine, editor);
    },
  },

  pack: {
    title: "Neovim with `vim.pack`",
    async run(machine, { nvim }) {
      const page = "docs/editors/neovim.md";
      const spec = documented(page, /^vim\.pack\.add\(.*\)$/m);
      machine.did(`add \`${spec}\` to init.lua`);
      hasNeovim(machine, nvim, `${spec}\n`);
      const editor = machine.terminal();
      await editor.until(PROMPT);
      await machine.line(editor, "nvim", /These plugins will be installed[^]*mcp-sidecar/);
      await machine.key(editor, "y", EMPTY_BUFFER, "y: install the plugin");
      await machine.line(editor, documented(page, /`(:Mcp install)`/), /mcp-sidecar [\d.]+ is ready/);
      machine.picture(editor, "installed");
      await demoInNeovim(machine, editor);
    },
  },

  vscode: {
    title: "VS Code",
    async run(machine, { vsix }) {
      documented("README.md", /install \*MCP Sidecar\*[^|]*`\.vsix` of a release/);
      const { openVSCode } = await import("../../scripts/vscode-drive.mjs");
      machine.did("install the extension");
      const env = { ...machine.env, PATH: process.env.PATH };
      const vs = await openVSCode({ workspace: machine.path("project"), vsix, env, dark: true, viewport: { width: 1280, height: 800 } });
      const shot = name => machine.pictures && vs.shot(path.join(machine.pictures, `journey-vscode-${name}.png`));
      const box = vs.page.locator(".quick-input-widget");
      try {
        machine.did("click MCP Sidecar in the activity bar");
        await vs.view("MCP Sidecar");
        machine.did(`click **${documented("docs/editors/vscode.md", /\*\*(Add a\s+Server)\*\*/).replaceAll(/\s+/g, " ")}**`);
        await vs.page.locator(".sidebar").getByRole("button", { name: "Add a Server" }).click();
        machine.did("choose Demo in the list");
        await box.locator("input.input").fill("demo");
        await vs.pick("Demo");
        machine.did("choose Add the server");
        await vs.pick("Add the server");
        await shot("added");
        machine.did("click **Trust `demo`…** in the message that the server was added");
        await vs.answer("`demo` is in", "Trust `demo`…");
        const question = await vs.webviewWith("demo-server");
        await question.locator("body.live").waitFor();
        await shot("trust");
        machine.did(`press **${documented("docs/editors/vscode.md", /Press \*\*(Trust)\*\*/)}**`);
        await question.getByRole("button", { name: "Trust", exact: true }).click();
        machine.did(`click **${documented("docs/editors/vscode.md", /\*\*(Run a Tool)\*\*/)}**`);
        await vs.treeItem("9 tools").waitFor();
        await vs.page.locator(".sidebar").getByRole("button", { name: "Run a Tool" }).click();
        machine.did("choose the tool in the list");
        await box.locator("input.input").fill("roll_dice");
        await vs.pick("roll_dice");
        machine.did("choose Run with the arguments of the form");
        await vs.pick("Run `roll_dice`");
        await vs.webviewWith("Run again…");
        machine.useful();
        await shot("result");
      } catch (error) {
        await vs.shot(path.join(machine.pictures ?? root, "failed-vscode.png"));
        throw error;
      } finally {
        await vs.close();
      }
    },
  },

  claude: {
    title: "Claude Code",
    run: machine =>
      withModel(machine, async (model, task) => {
        const key = "not-a-real-key-of-anybody";
        machine.has({ claude: machine.agent("claude") });
        machine.write("home/.claude.json", {
          hasCompletedOnboarding: true,
          customApiKeyResponses: { approved: [key.slice(-20)], rejected: [] },
        });
        Object.assign(machine.env, {
          ANTHROPIC_BASE_URL: model.url,
          ANTHROPIC_API_KEY: key,
          DISABLE_TELEMETRY: "1",
          DISABLE_AUTOUPDATER: "1",
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        });
        const shell = await install(machine);
        await addDemo(machine, shell, /Let Claude Code use these servers/);
        await machine.line(shell, "", /read more at[^]*^\$$/m, "answer yes: let Claude Code use the servers");
        machine.picture(shell, "setup");
        await machine.line(shell, "claude", /I trust this folder/);
        await machine.key(shell, "Enter", /for shortcuts/, "Enter: trust the folder in Claude Code");
        await machine.request(shell, task, /Do you want to proceed/, "/clear");
        await machine.key(shell, "Enter", /Decision/, "Enter: allow the call in Claude Code");
        machine.picture(shell, "question");
        await machine.key(shell, "Right", /Allow once/, "→: show the answers of mcp-sidecar");
        await machine.key(shell, "Enter", /✔ Decision: Allow once/, "Enter: allow once");
        await machine.key(shell, "Enter", /DONE 42/, "Enter: accept");
        machine.useful();
        machine.picture(shell, "result");
      }),
  },

  codex: {
    title: "Codex",
    run: machine =>
      withModel(machine, async (model, task) => {
        machine.has({ codex: machine.agent("codex") });
        machine.env.FAKE_KEY = "not-a-real-key";
        machine.write(
          "home/.codex/config.toml",
          `model_provider = "fake"
model = "gpt-5"
[model_providers.fake]
name = "fake"
base_url = "${model.url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
supports_websockets = false
`,
        );
        const shell = await install(machine);
        await addDemo(machine, shell, /Let Codex use these servers/);
        await machine.line(shell, "", /read more at[^]*^\$$/m, "answer yes: let Codex use the servers");
        machine.picture(shell, "setup");
        await machine.line(shell, "codex", /Ask Codex/);
        await machine.request(shell, task, /Trust and continue/);
        await machine.key(shell, "Enter", /1\. Allow once/, "Enter: trust the folder in Codex");
        machine.picture(shell, "question");
        await machine.key(shell, "Enter", /└ 42/, "Enter: allow the call once");
        machine.useful();
        machine.picture(shell, "result");
      }),
  },

  have: {
    title: "I already have a `.vscode/mcp.json` and a Claude config",
    async run(machine, { files }) {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: mcp-sidecar expands it.
      const servers = { files: { type: "stdio", command: files, args: ["${workspaceFolder}"] } };
      machine.write("project/.vscode/mcp.json", { servers });
      machine.write("home/.claude.json", { mcpServers: { home: { command: files, args: [machine.path("home")] } } });
      const shell = await install(machine);
      await init(machine, shell, /1 server for all your projects: home\. Import\?/);
      await machine.line(shell, "", /Trust it\?/, "answer yes: import the server of Claude Code");
      machine.picture(shell, "trust");
      await machine.line(shell, "y", /Call \w+\/list_allowed_directories/, "answer yes: trust the server of .vscode/mcp.json");
      await machine.line(shell, "", /Allowed directories:\n.*\/(project|home)$/m, "answer yes: call a tool that only reads");
      machine.useful();
      await shell.until(/Let Claude Code use these servers/);
      machine.picture(shell, "call");
    },
  },

  nothing: {
    title: "I have nothing",
    async run(machine) {
      const shell = await install(machine);
      await addDemo(machine, shell, /^42$/m);
      machine.useful();
      await shell.until(/read more at[^]*^\$$/m);
      machine.picture(shell, "call");
    },
  },
};

/** The init.lua of a user of lazy.nvim, from its manual. */
const lazy = spec => `local lazypath = vim.fn.stdpath("data") .. "/lazy/lazy.nvim"
if not vim.uv.fs_stat(lazypath) then
  vim.fn.system({ "git", "clone", "--filter=blob:none", "--branch=stable", "https://github.com/folke/lazy.nvim.git", lazypath })
end
vim.opt.rtp:prepend(lazypath)
require("lazy").setup({ spec = { ${spec} } })
`;
