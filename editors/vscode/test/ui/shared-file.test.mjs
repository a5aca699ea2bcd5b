// `.vscode/mcp.json` belongs to VS Code, which starts its servers itself: the window says so, and no server runs twice.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before } from "node:test";
import { makeSandbox, openWindow } from "../sandbox.mjs";
import { openWaiting, press, steps } from "./support.mjs";

let sandbox;
let vs;

before(async () => {
  sandbox = makeSandbox();
  fs.writeFileSync(sandbox.file("mcp.json"), '{ "servers": {} }\n');
  fs.rmSync(sandbox.file(".cursor"), { recursive: true });
  const both = { type: "stdio", command: sandbox.binary, args: ["demo-server"] };
  fs.mkdirSync(sandbox.file(".vscode"));
  fs.writeFileSync(sandbox.file(".vscode/mcp.json"), `${JSON.stringify({ servers: { both } }, undefined, 2)}\n`);
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

async function open() {
  vs = await openWindow(sandbox, { files: [".vscode/mcp.json"] });
  await vs.view("MCP Sidecar");
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);
/** Processes of the server, no matter who started them. They are found by their program, because the sidecar cleans their environment. */
function running() {
  return fs.readdirSync("/proc").flatMap(id => {
    try {
      const [program, argument] = fs.readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0");
      return program === sandbox.binary && argument === "demo-server" ? [id] : [];
    } catch {
      return []; // It has just ended.
    }
  });
}

/** Waits until this many processes of the server run. */
async function processes(count) {
  const until = Date.now() + 60_000;
  while (running().length !== count) {
    assert.ok(Date.now() < until, `expected ${count}:\n${running().join("\n")}`);
    await new Promise(resolve => setTimeout(resolve, 100));
  }
}

const asleep = step(
  "a lens says that VS Code starts the server itself, and the sidecar does not start a second one",
  async () => {
    await press(await openWaiting(vs, "MCP 1 waiting", "demo-server"), "Trust");
    await vs.treeItem(/both.*asleep/s).waitFor();
    await vs.openFile(".vscode/mcp.json");
    await vs.lens("starts it itself, without your rules · let MCP Sidecar run it").waitFor();
    const ours = (await vs.lenses()).filter(text => /^(Stop|Restart)$/.test(text));
    assert.deepEqual(ours, []);
    assert.deepEqual(running(), []);
  },
);

const runs = step("when VS Code has started it, there is one process", asleep, async () => {
  await vs.click(vs.lens(/^\W*Start$/), vs.lens("Running"));
  await processes(1);
});

step("its outline is shown once, keys are completed once, and a mistake is reported once", asleep, async () => {
  await vs.command("Explorer: Focus on Outline View");
  const names = vs.page.locator(".outline-tree .monaco-list-row", { hasText: "servers" });
  await names.first().waitFor();
  assert.equal(await names.count(), 1);
  await vs.page.locator(".view-line", { hasText: '"args"' }).first().click();
  await vs.page.keyboard.press("Home");
  await vs.page.keyboard.type('"');
  const suggestions = vs.page.locator(".suggest-widget .monaco-list-row");
  await vs.page.keyboard.press("Control+Space");
  await suggestions.filter({ hasText: "envFile" }).first().waitFor();
  const labels = (await suggestions.allInnerTexts()).map(text => text.split("\n")[0].trim());
  assert.deepEqual(labels.length, new Set(labels).size, labels.join());
  assert.ok(!labels.some(label => /policy|tools|autoStart/.test(label)), labels.join());
  await vs.page.keyboard.press("Escape");
  await vs.command("File: Revert File");
  await vs.page.locator(".view-line", { hasText: '"args"' }).first().click();
  await vs.page.keyboard.press("End");
  await vs.page.keyboard.type(', "command": 5');
  const problems = (await vs.problems()).filter(text => /\[Ln/.test(text));
  const places = problems.map(text => /\[Ln \d+, Col \d+\]/.exec(text)?.[0]);
  assert.equal(new Set(places).size, places.length, problems.join("\n"));
  await vs.openFile(".vscode/mcp.json");
  await vs.command("File: Revert File");
});

step(
  "one click lets the sidecar run it: the entry moves, VS Code's process ends, and one of the sidecar's starts",
  runs,
  async () => {
    await vs.click(
      vs.lens("let MCP Sidecar run it"),
      vs.page.locator(".notification-toast", { hasText: "`both` is now in" }),
    );
    await vs.command("File: Save All Files");
    await vs.view("MCP Sidecar");
    await vs.treeItem(/both.*9 tools/s).waitFor();
    await processes(1);
    assert.deepEqual(JSON.parse(fs.readFileSync(sandbox.file(".vscode/mcp.json"), "utf8")).servers, {});
    assert.ok(JSON.parse(fs.readFileSync(sandbox.file("mcp.json"), "utf8")).servers.both);
  },
);
