// Takes the pictures for the documentation, in one window, in the order of the scenes below. With the name `light` or `dark`,
// takes those and more in that theme and saves them in `target/pictures`, to look at.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { extension, filesystem, makeSandbox, openWindow } from "./sandbox.mjs";
import { makeSupervised, supervised } from "./supervised.mjs";

const root = path.resolve(extension, "../..");

/** Each scene starts where the one before it ends. */
const scenes = {
  async trust({ vs }) {
    await vs.status("waiting").then(item => item.click());
    await (await vs.webviewWith("Do not trust")).locator("body.live").waitFor();
  },

  async servers({ vs, press }) {
    await press("Do not trust", "Trust");
    await vs.treeItem("9 tools").waitFor();
    await vs.openFile("mcp.json");
    await vs.lens("9 tools").waitFor();
    await vs.treeItem("9 tools").click();
    await vs.treeItem("take_note").waitFor();
  },

  async levels({ vs }) {
    await vs.command("Notifications: Clear All Notifications");
    await vs.command("MCP Sidecar: Set Tool Level…");
    await vs.page.locator(".quick-input-widget input.input").fill("take_note");
    await vs.pick("take_note");
    await vs.page.locator(".quick-input-list").getByText("require-approval").first().waitFor();
    return () => vs.page.keyboard.press("Escape");
  },

  async form({ vs }) {
    await vs.command("MCP Sidecar: Run Tool…");
    await vs.page.locator(".quick-input-widget input.input").fill("roll_dice");
    await vs.pick("roll_dice");
    await vs.page.locator(".quick-input-list").getByText("Run `roll_dice`").waitFor();
  },

  async result({ vs }) {
    await vs.page.keyboard.press("Escape");
    await vs.command("MCP Sidecar: Run Tool…");
    await vs.page.locator(".quick-input-widget input.input").fill("picture");
    await vs.pick("picture");
    await vs.pick("Run `picture`");
    await vs.webviewWith("Run again…");
  },

  async add({ vs }) {
    await vs.command("View: Close All Editors");
    await vs.command("MCP Sidecar: Add Server…");
    await vs.pick("Another program or address…");
    await vs.type("npx -y @modelcontextprotocol/server-memory");
    await vs.page.locator(".quick-input-list").getByText("Add the server").waitFor();
  },

  async approval({ vs, sandbox, state }) {
    await vs.page.keyboard.press("Escape");
    await vs.command("View: Close All Editors");
    const agent = await sandbox.agent("codex");
    state.waiting = agent.call("files__edit_file", {
      path: sandbox.file("notes.md"),
      edits: [
        { oldText: "# Notes", newText: "# Notes of the release\n\nAda signs the build, Grace writes the notes." },
      ],
    });
    await vs.status("waiting").then(item => item.click());
    await (await vs.webviewWith("edit_file")).locator("body.live").waitFor();
    await vs.page.locator(".notification-toast").first().waitFor({ state: "detached" });
  },

  async edit({ vs, press }) {
    await press("edit_file", "Edit arguments, then allow…");
    await vs.page.locator(".quick-input-list").getByText("with these arguments").waitFor();
  },

  async dashboard({ vs, sandbox, press, state }) {
    await vs.page.keyboard.press("Escape");
    await press("edit_file", "Allow once");
    await state.waiting;
    const agent = await sandbox.agent("claude-code");
    for (const city of ["Lisbon", "Oslo", "Nairobi"]) {
      await agent.call("demo__weather", { city });
    }
    await agent.call("demo__add", { a: 1, b: 2 });
    await vs.command("View: Close All Editors");
    await vs.command("MCP Sidecar: Open Dashboard");
    await vs.webviewWith("Policy");
    await vs.treeItem("claude-code").waitFor();
  },

  async agents({ vs }) {
    await vs.command("View: Close All Editors");
    await vs.command("MCP Sidecar: Focus on Agents View");
    await vs.treeItem("idle").waitFor();
  },

  async filter({ vs }) {
    await vs.command("MCP Sidecar: Filter Calls…");
    await vs.page.locator(".quick-input-list").getByText("denied calls").waitFor();
    return () => vs.page.keyboard.press("Escape");
  },

  async together({ vs, sandbox, press }) {
    await vs.command("View: Close All Editors");
    const agent = await sandbox.agent("claude-code");
    const file = name => sandbox.file(name);
    const calls = [
      agent.call("files__write_file", { path: file("CHANGELOG.md"), content: "# Changes\n\n- A first release.\n" }),
      agent.call("files__move_file", { source: file("notes.md"), destination: file("docs/notes.md") }),
      agent.call("demo__take_note", { text: "The notes moved to docs." }),
    ];
    await vs.status("3 waiting").then(item => item.click());
    const page = await vs.webviewWith("Answer only this…");
    await page.getByRole("checkbox").first().check();
    await vs.page.locator(".notification-toast").first().waitFor({ state: "detached" });
    return async () => {
      await press("Answer only this…", "Deny all 3");
      await Promise.allSettled(calls);
    };
  },

  async problems({ vs }) {
    await vs.command("View: Close All Editors");
    await vs.openFile(".cursor/mcp.json");
    await vs.problems();
    await vs.quickFix("comand");
  },

  async "trust-file"({ vs, sandbox }) {
    await vs.page.keyboard.press("Escape");
    await vs.page.keyboard.press("Control+J"); // hides the Problems view
    await vs.command("View: Close All Editors");
    const servers = {
      db: { command: "npx", args: ["-y", "@modelcontextprotocol/server-postgres", "postgresql://localhost/shop"] },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the sidecar expands it.
      search: { type: "http", url: "https://search.example/mcp", headers: { Authorization: "Bearer ${SEARCH_TOKEN}" } },
      tests: { command: "./scripts/test-server", args: ["--watch"] },
    };
    fs.writeFileSync(sandbox.file(".mcp.json"), JSON.stringify({ mcpServers: servers }, undefined, 2));
    await vs.status("3 waiting").then(item => item.click());
    await (await vs.webviewWith("Answer only this…")).locator("body.live").waitFor();
    await vs.page.locator(".notification-toast").first().waitFor({ state: "detached" });
  },
};

/** These are in a window of their own, on a workspace that the user does not trust. */
const restricted = {
  async restricted({ vs }) {
    const row = vs.treeItem("demo");
    await vs.until(
      async timeout => {
        await row.hover({ timeout });
        await row.locator('[aria-label^="Review and Trust"]').click({ timeout });
      },
      timeout => vs.page.locator(".monaco-dialog-box").waitFor({ timeout }),
    );
  },
};

/** These are in a window on a folder without servers. */
const first = {
  async empty({ vs }) {
    await vs.page.locator(".sidebar").getByRole("button", { name: "Add a Server" }).waitFor();
  },

  async tour({ vs }) {
    await vs.page.locator(".sidebar").getByText("Take the tour").click();
    await vs.page.locator(".gettingStartedContainer").getByText("Trust it", { exact: true }).first().waitFor();
  },

  async templates({ vs }) {
    await vs.command("View: Close All Editors");
    await vs.page.locator(".sidebar").getByRole("button", { name: "Add a Server" }).click();
    await vs.page.locator(".quick-input-list").getByText("Filesystem", { exact: true }).waitFor();
  },

  async registry({ vs }) {
    await vs.pick("Search the MCP registry…");
    await vs.type("weather");
    await vs.page.locator(".quick-input-widget input.input[placeholder^='Add which']").waitFor();
    await vs.page.locator(".quick-input-list .monaco-list-row").first().waitFor();
    return () => vs.page.keyboard.press("Escape");
  },

  async added({ vs }) {
    await vs.page.locator(".sidebar").getByRole("button", { name: "Add a Server" }).click();
    await vs.page.locator(".quick-input-widget input.input").fill("demo");
    await vs.pick("Demo");
    await vs.pick("Add the server");
    await vs.notification("`demo` is in");
  },
};

/** The scenes that are no part of the documentation. */
const more = ["levels", "filter", ...Object.keys(first)];

/** An API like that of the MCP registry, on loopback. */
async function serveRegistry(sandbox) {
  const answer = fs.readFileSync(path.join(root, "tests/fixtures/registry.json"));
  const server = http.createServer((_, response) => response.end(answer)).listen(0, "127.0.0.1");
  await new Promise(resolve => server.once("listening", resolve));
  const settings = `[registry]\nurl = "http://127.0.0.1:${server.address().port}"\n`;
  fs.writeFileSync(path.join(sandbox.env.MCP_SIDECAR_CONFIG_DIR, "config.toml"), settings);
  return server;
}

/** @param {string[]} given the names of the scenes to keep, all by default; and perhaps `light` or `dark` */
export async function makePictures(given) {
  const theme = given.find(name => name === "light" || name === "dark");
  const names = given.filter(name => name !== theme);
  const known = Object.keys({ ...scenes, ...restricted, ...first, ...supervised });
  const unknown = names.filter(name => !known.includes(name));
  if (unknown.length > 0) {
    throw new Error(`no picture named ${unknown.join(", ")}; there are ${known.join(", ")}`);
  }
  const out = path.join(root, theme ? `target/pictures/${theme}` : "docs/pictures");
  fs.mkdirSync(out, { recursive: true });
  const wanted = name => names.includes(name) || (names.length === 0 && Boolean(theme || !more.includes(name)));
  const show = (sandbox, options, all) => play(sandbox, { dark: theme !== "light", ...options }, all, out, wanted);
  if (Object.keys(scenes).some(wanted)) {
    await show(makeSandbox({ servers: { files: filesystem() } }), {}, scenes);
  }
  if (Object.keys(restricted).some(wanted)) {
    await show(makeSandbox(), { trust: false }, restricted);
  }
  if (Object.keys(first).some(wanted)) {
    const sandbox = makeSandbox();
    fs.rmSync(sandbox.file("mcp.json"));
    fs.rmSync(sandbox.file(".cursor"), { recursive: true });
    const registry = await serveRegistry(sandbox);
    await show(sandbox, { files: ["notes.md"] }, first);
    registry.close();
  }
  if (Object.keys(supervised).some(wanted)) {
    const sandbox = await makeSupervised();
    const { windowEnv: env, settings } = sandbox;
    await show(sandbox, { files: ["notes.md"], viewport: { width: 1440, height: 900 }, env, settings }, supervised);
  }
}

/** Plays the scenes in one window, and takes pictures of those that are wanted. */
async function play(sandbox, { settings, ...options }, all, out, wanted) {
  const vs = await openWindow(sandbox, {
    files: ["mcp.json"],
    viewport: { width: 1280, height: 800 },
    settings: {
      "editor.minimap.enabled": false,
      "editor.fontSize": 13,
      "window.commandCenter": false,
      "window.title": "my project",
      ...settings,
    },
    ...options,
  });
  const press = async (text, button) => {
    const page = await vs.webviewWith(text);
    await page.locator("body.live").waitFor();
    await page.getByRole("button", { name: button, exact: true }).click();
  };
  const state = {};
  try {
    await vs.view("MCP Sidecar");
    for (const [name, scene] of Object.entries(all)) {
      let after;
      try {
        after = await scene({ vs, sandbox, press, state });
      } catch (error) {
        await vs.shot(path.join(root, `target/failed-${name}.png`)).catch(() => {});
        throw new Error(`${name}: ${error.message}`);
      }
      if (wanted(name)) {
        await vs.page.mouse.move(0, 0); // no tooltip in the picture
        console.log(await vs.shot(path.join(out, `vscode-${name}.png`), { settle: 1_000 }));
      }
      await after?.();
    }
  } finally {
    await vs.close();
    await sandbox.close();
  }
}
