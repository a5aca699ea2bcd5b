// A window with several folders: the servers of all of them, and one sidecar for them.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before } from "node:test";
import { makeSandbox, openWindow } from "../sandbox.mjs";
import { openPage, press, steps } from "./support.mjs";

let sandbox;
let vs;

before(async () => {
  sandbox = makeSandbox({ servers: {}, policy: { readOnly: "allow-session" } });
  fs.rmSync(sandbox.file("mcp.json"));
  fs.rmSync(sandbox.file(".cursor"), { recursive: true });
  for (const [folder, server] of [
    ["front", "pages"],
    ["back", "tables"],
  ]) {
    fs.mkdirSync(sandbox.file(folder));
    const servers = { [server]: { command: "mcp-sidecar", args: ["demo-server"] } };
    fs.writeFileSync(sandbox.file(`${folder}/mcp.json`), JSON.stringify({ servers }, undefined, 2));
    fs.writeFileSync(sandbox.file(`${folder}/only-${folder}.md`), `# Only in ${folder}\n`);
  }
  const folders = [{ path: "front" }, { path: "back" }];
  fs.writeFileSync(sandbox.file("all.code-workspace"), JSON.stringify({ folders }));
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

async function open() {
  const workspace = sandbox.file("all.code-workspace");
  vs = await openWindow(sandbox, { workspace, settings: { "mcpSidecar.editorServer": true } });
  // If VS Code itself has not opened the folders, it gets another chance: the sidecar can only know what VS Code says.
  const folders = ["front", "back"].map(name => vs.treeItem(new RegExp(`^${name}$`)));
  let opened = false;
  await vs.until(
    async () => {
      if (opened) {
        await vs.page.reload();
      }
      opened = true;
    },
    timeout => Promise.all(folders.map(folder => folder.waitFor({ timeout: 2 * timeout }))),
  );
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);

const started = step("the servers of all folders are asked about and start", async () => {
  await vs.view("MCP Sidecar");
  await vs.status("MCP 2 waiting");
  for (const name of ["pages", "tables"]) {
    const row = vs.page.locator(".sidebar .monaco-list-row", { hasText: `server \`${name}\`` }).first();
    const page = await openPage(vs, row, `\`${name}\``);
    await page.locator("h1", { hasText: name }).waitFor();
    await press(page, "Trust");
    await vs.treeItem(new RegExp(`${name}.*9 tools`, "s")).waitFor();
  }
  await vs.status("MCP 3/3"); // and the window itself
});

step(
  "an agent gets the servers of all folders of this window, and the window finds files in all of them",
  started,
  async () => {
    const agent = await sandbox.agent("codex", "front");
    const { tools } = await agent.request("tools/list");
    const servers = new Set(tools.map(tool => tool.name.split("__")[0]));
    assert.ok(servers.has("pages") && servers.has("tables"), [...servers].join());
    for (const file of ["only-front.md", "only-back.md", "back/only-back.md"]) {
      const answer = await agent.call("vscode__read_editor", { path: file });
      assert.match(JSON.stringify(answer), /Only in/, file);
    }
  },
);
