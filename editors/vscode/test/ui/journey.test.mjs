// The first hour of a user, in one window: trust a server, see its tools, run one, answer an agent, fix a file.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { gone, makeSandbox, openWindow } from "../sandbox.mjs";
import { openWaiting, press, steps } from "./support.mjs";

let sandbox;
let vs;

before(async () => {
  sandbox = makeSandbox();
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

async function open() {
  vs = await openWindow(sandbox, {
    files: ["mcp.json"],
    settings: { "mcpSidecar.approvals.attention": "page" },
  });
  await vs.view("MCP Sidecar");
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);

const trusted = step(
  "a server of the project does not start until the user has seen and trusted its definition",
  async () => {
    await vs.status("MCP 1 waiting");
    await vs.treeItem("waiting for trust").waitFor();
    const page = await openWaiting(vs, "MCP 1 waiting", "demo-server");
    await press(page, "Trust");
    await vs.treeItem("9 tools").waitFor();
    await vs.status("MCP 1/1");
  },
);

step("the tree shows tools with their levels", trusted, async () => {
  await vs.click(vs.treeItem("9 tools"), vs.treeItem("echo"));
  assert.match(await vs.treeItem("forget_notes").innerText(), /require-approval · destructive/);
});

step("lenses in the file show the same", trusted, async () => {
  await vs.openFile("mcp.json");
  await vs.lens("9 tools").waitFor();
  await vs.lens("Restart").waitFor();
});

step("a level is chosen from a list that says what each level does", trusted, async () => {
  await vs.codeAction('"demo"', "Set the level of all tools of `demo`");
  const row = vs.page.locator(".quick-input-list .monaco-list-row", { hasText: "deny" });
  assert.match(await row.innerText(), /rejects every call/);
  await vs.pick("deny");
  await vs.page.locator(".view-line", { hasText: /"\*":\s*"deny"/ }).waitFor();
  await vs.command("File: Revert File");
});

step("a tool runs from a form made from its schema, and its result is shown", trusted, async () => {
  await vs.command("MCP Sidecar: Run Tool…");
  await vs.pick("weather");
  await vs.type("Lisbon");
  await vs.pick("Run `weather`");
  const page = await vs.webviewWith("Lisbon");
  assert.match(await page.locator("main").innerText(), /"invented": true/);
});

const answered = step("an agent outside the editor waits for an answer, and gets it", trusted, async () => {
  const agent = await sandbox.agent("codex");
  const answer = agent.call("demo__take_note", { text: "Release on Friday." });
  const page = await openWaiting(vs, "MCP 1 waiting", "Release on Friday.");
  assert.match(await page.locator("main").innerText(), /asked by the agent codex/);
  await press(page, "Allow once");
  assert.notEqual((await answer).isError, true);
  await vs.status("MCP 1/1");
});

step("a denied call does not run, and the agent is told why", trusted, async () => {
  const agent = await sandbox.agent("codex");
  const answer = agent.call("demo__forget_notes");
  const page = await openWaiting(vs, "MCP 1 waiting", "forget_notes");
  await page.getByPlaceholder("why not").fill("they are still needed");
  await press(page, "Deny");
  assert.match(JSON.stringify(await answer.catch(error => error.message)), /they are still needed/);
  await vs.status("MCP 1/1");
});

step("a page that opens by itself does not take the keys that are typed in the editor", trusted, async () => {
  await vs.command("View: Close All Editors");
  await vs.openFile("mcp.json");
  await vs.page.keyboard.press("Control+End");
  const agent = await sandbox.agent("codex");
  const answer = agent.call("demo__take_note", { text: "unseen" });
  const page = await vs.webviewWith("unseen");
  await page.locator("body.live").waitFor();
  await vs.page.keyboard.press("Control+Enter");
  await vs.page.keyboard.type("still typing");
  await vs.page.locator(".editor-group-container.active .view-line", { hasText: /still.typing/ }).waitFor();
  await vs.status("MCP 1 waiting");
  await press(page, "Deny");
  assert.match(JSON.stringify(await answer.catch(error => error.message)), /denied/);
  await vs.status("MCP 1/1");
  await vs.command("File: Revert File");
});

step("a server asks for values by a form, and the call continues with the answer", trusted, async () => {
  await vs.command("MCP Sidecar: Run Tool…");
  await vs.page.locator(".quick-input-widget input.input").fill("ask_name");
  await vs.pick("ask_name");
  await vs.pick("Run `ask_name`");
  const question = await openWaiting(vs, "MCP 1 waiting", "Requested values");
  const asked = (await question.locator("p.text").innerText()).split("\n");
  assert.match(asked.at(-1), /It asks because you called `ask_name`/);
  await press(question, "Accept…");
  await vs.type("Ada");
  await vs.page.locator(".quick-input-list .monaco-list-row", { hasText: asked[0] }).waitFor();
  await vs.pick("Send");
  const page = await vs.webviewWith("Ada");
  assert.match(await page.locator("main").innerText(), /ask_name/);
});

step("the log shows every call with who asked and what came of it", answered, async () => {
  await vs.view("MCP Sidecar");
  await vs.treeItem("demo · codex").waitFor();
  await vs.treeItem("demo · you").waitFor();
});

step("problems are shown in the file, and a quick fix fixes one", trusted, async () => {
  await vs.openFile(".cursor/mcp.json");
  await vs.problems();
  await vs.quickFix("comand", "command");
  await vs.page
    .locator(".markers-panel .monaco-list-row", { hasText: "comand" })
    .first()
    .waitFor({ state: "detached" });
  assert.match(await vs.editorText(), /"command": "mcp-sidecar"/);
  await vs.command("File: Revert File");
});

step("the sidecar restarts, and trusted servers start again", trusted, async () => {
  await vs.command("MCP Sidecar: Restart Sidecar");
  await vs.status("MCP 1/1");
  await vs.view("MCP Sidecar");
  await vs.treeItem("9 tools").waitFor();
});

step("closing the window leaves no process running", async () => {
  await vs.close();
  await sandbox.close();
  await gone(sandbox.processes);
});
