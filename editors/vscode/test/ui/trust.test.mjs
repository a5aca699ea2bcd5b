// Many servers in one file are one question, which shows the definition of each.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before } from "node:test";
import { makeSandbox, openWindow } from "../sandbox.mjs";
import { press, steps } from "./support.mjs";

let sandbox;
let vs;

before(async () => {
  sandbox = makeSandbox();
  const server = name => ({ command: "mcp-sidecar", args: ["demo-server"], env: { WHO: name } });
  const servers = Object.fromEntries(["zebra", "ant", "mole"].map(name => [name, server(name)]));
  fs.writeFileSync(sandbox.file("mcp.json"), JSON.stringify({ servers }, undefined, 2));
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

async function open() {
  vs = await openWindow(sandbox, { files: ["notes.md"] });
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);

const asked = step("the servers of a file are one notification and one page, in the order of the file", async () => {
  await vs.view("MCP Sidecar");
  await vs.notification("Trust 3 servers of");
  const toasts = vs.page.locator(".notification-toast");
  assert.equal(await toasts.count(), 1, (await toasts.allInnerTexts()).join("\n"));
  await vs.answer("Trust 3 servers of", "Review…");
  const page = await vs.webviewWith("Answer only this…");
  const servers = await page.locator("section label code").allInnerTexts();
  assert.deepEqual(servers, ["zebra", "ant", "mole"]);
  assert.equal((await page.locator("main").innerText()).match(/demo-server/g).length, 3);
  assert.equal(await page.locator("input:checked").count(), 0);
});

step("those that are selected are trusted and start, and the others are still asked about", asked, async () => {
  const page = await vs.webviewWith("Answer only this…");
  await page.locator("section", { hasText: "ant" }).getByRole("checkbox").check();
  await page.locator("section", { hasText: "mole" }).getByRole("checkbox").check();
  await press(page, "Trust the selected servers (2)");
  await vs.notification("`ant` and `mole` are trusted in this project");
  const one = await vs.webviewWith("Do not trust");
  await one.locator("h1", { hasText: "`zebra`" }).waitFor();
  await vs.treeItem(/ant.*9 tools/s).waitFor();
  await vs.treeItem(/mole.*9 tools/s).waitFor();
  await vs.treeItem(/zebra.*waiting for trust/s).waitFor();
});
