// Nothing runs and nothing is granted unless the user saw exactly that: keys, clicks and notifications in the window.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before } from "node:test";
import { filesystem, makeSandbox, openWindow } from "../sandbox.mjs";
import { press, steps } from "./support.mjs";

let sandbox;
let vs;
let agent;

before(async () => {
  const notes = { command: "mcp-sidecar", args: ["demo-server"] };
  sandbox = makeSandbox({ servers: { files: filesystem(), notes } });
  fs.writeFileSync(sandbox.file("mcp.json"), '{ "servers": {} }\n');
  vs = await openWindow(sandbox, { files: ["notes.md"] });
  await vs.status("MCP 2/2");
  agent = await sandbox.agent("codex");
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

const step = steps(() => vs);

/** A call of a destructive tool that leaves a trace when it runs: `name` appears in the workspace. */
function write(name, content = "written by an agent") {
  const outcome = agent.call("files__write_file", { path: sandbox.file(name), content });
  return settled(outcome);
}

/** Another destructive tool: `from` becomes `to`. */
function move(from, to) {
  return settled(agent.call("files__move_file", { source: sandbox.file(from), destination: sandbox.file(to) }));
}

/** Resolves to the answer as text, whether the call ran or not. */
async function settled(call) {
  return JSON.stringify(await call.catch(error => error.message));
}

const exists = name => fs.existsSync(sandbox.file(name));
const question = text =>
  vs.page.locator('[id="mcpSidecar.approvals"], .sidebar').locator(".monaco-list-row", { hasText: text });
/** The window knows that nothing waits any more: only then does its status bar count new questions. */
const allAnswered = () => vs.status("MCP 2/2");
const heading = (page, text) => page.locator("h1", { hasText: text }).waitFor();

let first;
let second;

step("a key in the Approvals view answers nothing: the focused row may be another one than the selected", async () => {
  first = write("first.txt");
  await vs.status("MCP 1 waiting");
  second = move("notes.md", "moved.md");
  await vs.status("MCP 2 waiting");
  await vs.view("MCP Sidecar");
  await question("write_file").click(); // selects the first row
  await heading(await vs.webviewWith("first.txt"), "write_file");
  await vs.command("MCP Sidecar: Focus on Approvals View");
  await vs.page.keyboard.press("ArrowDown"); // focuses the second one
  await vs.page.keyboard.press("Control+Enter");
  await vs.page.keyboard.press("Delete");
  await vs.page.keyboard.press("Enter"); // shows the focused row
  await heading(await vs.webviewWith("moved.md"), "move_file");
  await vs.status("MCP 2 waiting");
  assert.equal(exists("first.txt"), false, "the call that was selected, not focused, ran");
  assert.equal(exists("moved.md"), false);
});

step("the context menu, opened by a key, denies the focused row and no other", async () => {
  await vs.command("MCP Sidecar: Focus on Approvals View");
  await vs.page.keyboard.press("Home");
  await vs.page.keyboard.press("ArrowDown");
  await vs.page.keyboard.press("Shift+F10");
  const chosen = vs.page.locator(".monaco-menu .action-item.focused", { hasText: "Deny" });
  await vs.page.locator(".monaco-menu .action-item").first().waitFor();
  for (let key = 0; key < 5 && !(await chosen.isVisible()); key++) {
    await vs.page.keyboard.press("ArrowDown");
  }
  await vs.page.keyboard.press("Enter");
  assert.match(await second, /denied/);
  await vs.status("MCP 1 waiting");
  await question("write_file").waitFor();
});

step("the rows of questions have no button and no menu entry that grants", async () => {
  await question("write_file").click({ button: "right" });
  const menu = vs.page.locator(".monaco-menu .action-item");
  await menu.first().waitFor();
  assert.deepEqual(
    (await menu.allInnerTexts()).filter(text => /allow|accept|disable/i.test(text)),
    [],
  );
  await vs.page.keyboard.press("Escape");
  await question("write_file").hover();
  const inline = await question("write_file")
    .locator(".action-label")
    .evaluateAll(all => all.map(one => one.ariaLabel));
  assert.deepEqual(
    inline.filter(text => /allow/i.test(text ?? "")),
    [],
  );
});

step("Ctrl+Alt+Y opens the oldest question in full, with the focus on nothing that answers", async () => {
  await vs.openFile("notes.md");
  await vs.page.keyboard.press("Control+Alt+Y");
  const page = await vs.webviewWith("written by an agent");
  await page.locator("body.live").waitFor();
  assert.match(await page.locator("main").innerText(), /first\.txt/);
  await vs.page.keyboard.press("Enter");
  await vs.page.keyboard.press("Space");
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), "H1");
  assert.equal(exists("first.txt"), false);
});

step("a key answers the question on the page, and is dead while the next question takes its place", async () => {
  const next = write("next.txt");
  const page = await vs.webviewWith("Question 1 of 2");
  await page.locator("body.live").waitFor();
  // A hurried user: the second press was meant for the first question.
  await vs.page.keyboard.press("Control+Enter");
  await vs.page.keyboard.press("Control+Enter");
  assert.doesNotMatch(await first, /denied/);
  assert.equal(exists("first.txt"), true);
  const after = await vs.webviewWith("next.txt");
  await after.getByText("This is another question").waitFor();
  await after.locator("body.live").waitFor();
  await vs.status("MCP 1 waiting");
  assert.equal(exists("next.txt"), false);
  await press(after, "Deny");
  assert.match(await next, /denied/);
  await allAnswered();
});

step("a note that is half typed stays when another question arrives", async () => {
  const noted = write("noted.txt");
  await vs.status("MCP 1 waiting").then(item => item.click());
  const page = await vs.webviewWith("noted.txt");
  await page.locator("body.live").waitFor();
  await page.getByPlaceholder("why not").click();
  await vs.page.keyboard.type("it is ");
  const other = write("other.txt");
  await page.getByText("Question 1 of 2").waitFor();
  await vs.page.keyboard.type("still needed");
  assert.equal(await page.getByPlaceholder("why not").inputValue(), "it is still needed");
  // VS Code throws the page away while another tab covers it.
  await vs.openFile("notes.md");
  await vs.page.locator(".tab", { hasText: "Approval" }).click();
  const again = await vs.webviewWith("noted.txt");
  await again.locator("body.live").waitFor();
  assert.equal(await again.getByPlaceholder("why not").inputValue(), "it is still needed");
  await again.getByPlaceholder("why not").press("Enter");
  assert.match(await noted, /it is still needed/);
  await press(await vs.webviewWith("other.txt"), "Deny");
  assert.match(await other, /denied/);
  await allAnswered();
  assert.equal(exists("noted.txt") || exists("other.txt"), false);
});

step("several questions are one notification, which offers to review them and nothing else", async () => {
  await vs.command("View: Close All Editors");
  await vs.command("Notifications: Clear All Notifications");
  const calls = [];
  for (const name of ["a.txt", "b.txt", "c.txt"]) {
    calls.push(write(name));
    await vs.status(`MCP ${calls.length} waiting`);
  }
  await vs.notification("3 questions are waiting");
  const toasts = vs.page.locator(".notification-toast");
  assert.equal(await toasts.count(), 1, (await toasts.allInnerTexts()).join("\n"));
  await toasts.first().hover();
  assert.deepEqual(await toasts.first().locator(".monaco-button").allInnerTexts(), ["Review…"]);
  await vs.answer("3 questions are waiting", "Review…");
  for (const name of ["a.txt", "b.txt", "c.txt"]) {
    await press(await vs.webviewWith(name), "Deny");
  }
  for (const call of calls) {
    assert.match(await call, /denied/);
  }
  await allAnswered();
});

step("a double click on Allow once answers one question", async () => {
  const calls = [write("one.txt"), write("two.txt")];
  await vs.status("MCP 2 waiting").then(item => item.click());
  const page = await vs.webviewWith("Question 1 of 2");
  await page.locator("body.live").waitFor();
  await page.getByRole("button", { name: "Allow once", exact: true }).dblclick();
  const next = await vs.webviewWith("This is another question");
  await next.locator("body.live").waitFor();
  await vs.status("MCP 1 waiting");
  assert.deepEqual([exists("one.txt"), exists("two.txt")].sort(), [false, true]);
  await press(next, "Deny");
  await Promise.all(calls);
  await allAnswered();
});

step("a question that is gone is replaced visibly, and the last one leaves a note", async () => {
  const other = await sandbox.agent("claude-code");
  settled(other.call("notes__take_note", { text: "from another agent" }));
  await vs.status("MCP 1 waiting").then(item => item.click());
  const page = await vs.webviewWith("from another agent");
  const waiting = write("waiting.txt");
  await page.getByText("Question 1 of 2").waitFor();
  other.close();
  await page.getByText("This is another question").waitFor();
  await heading(page, "write_file");
  agent.close();
  await page.getByText("Nothing is waiting for your answer").waitFor();
  await waiting;
  assert.equal(exists("waiting.txt"), false);
  agent = await sandbox.agent("codex");
  await allAnswered();
});

step("a lasting answer is confirmed with the way to take it back", async () => {
  const granted = write("granted.txt");
  await vs.status("MCP 1 waiting").then(item => item.click());
  const page = await vs.webviewWith("granted.txt");
  await page.locator("body.live").waitFor();
  await press(page, "Allow for this session");
  assert.doesNotMatch(await granted, /denied/);
  await vs.answer("`write_file` of `files` is allowed for this session", "Show Grants");
  await vs.page.locator(".sidebar .monaco-list-row", { hasText: "allowed for this session" }).first().waitFor();
});

step("a click on a tool shows it, also one without arguments, and running it is a step with its name", async () => {
  await vs.command("View: Close All Editors");
  await vs.view("MCP Sidecar");
  await vs.treeItem("notes").click();
  await vs.treeItem("forget_notes").click();
  const page = await vs.webviewWith("Deletes all notes");
  await heading(page, "forget_notes");
  assert.match(await page.locator("main").innerText(), /may delete or overwrite/);
  assert.deepEqual(await page.getByRole("button").allInnerTexts(), ["Run…", "Set level…", "Why this level?"]);
  await press(page, "Run…");
  await vs.page.keyboard.press("Enter"); // the first row explains, it does not run
  await heading(await vs.webviewWith("Deletes all notes"), "forget_notes");
  await press(page, "Run…");
  await vs.pick("Run `forget_notes`");
  await vs.webviewWith("Run again…");
});
