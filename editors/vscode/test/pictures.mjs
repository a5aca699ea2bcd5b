// Takes the pictures for the documentation, in one window, in the order of the scenes below.
import fs from "node:fs";
import path from "node:path";
import { extension, filesystem, makeSandbox, openWindow } from "./sandbox.mjs";

const out = path.resolve(extension, "../../docs/pictures");

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

  async approval({ vs, sandbox, state }) {
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

  async dashboard({ vs, sandbox, press, state }) {
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

  async problems({ vs }) {
    await vs.command("View: Close All Editors");
    await vs.openFile(".cursor/mcp.json");
    await vs.problems();
    await vs.quickFix("comand");
  },
};

/** @param {string[]} names of the scenes to keep; all by default */
export async function makePictures(names) {
  const unknown = names.filter(name => !(name in scenes));
  if (unknown.length > 0) {
    throw new Error(`no picture named ${unknown.join(", ")}; there are ${Object.keys(scenes).join(", ")}`);
  }
  fs.mkdirSync(out, { recursive: true });
  const sandbox = makeSandbox({ servers: { files: filesystem() } });
  const vs = await openWindow(sandbox, {
    files: ["mcp.json"],
    dark: true,
    viewport: { width: 1280, height: 800 },
    settings: {
      "editor.minimap.enabled": false,
      "editor.fontSize": 13,
      "window.commandCenter": false,
      "window.title": "my project",
    },
  });
  const press = async (text, button) => {
    const page = await vs.webviewWith(text);
    await page.locator("body.live").waitFor();
    await page.getByRole("button", { name: button, exact: true }).click();
  };
  const state = {};
  try {
    await vs.view("MCP Sidecar");
    for (const [name, scene] of Object.entries(scenes)) {
      const file = path.join(out, `vscode-${name}.png`);
      try {
        await scene({ vs, sandbox, press, state });
      } catch (error) {
        await vs.shot(path.join(sandbox.workspace, "..", `${name}.png`)).catch(() => {});
        throw new Error(`${name}: ${error.message}`);
      }
      if (names.length === 0 || names.includes(name)) {
        console.log(await vs.shot(file, { settle: 1_000 }));
      }
    }
  } finally {
    await vs.close();
    await sandbox.close();
  }
}
