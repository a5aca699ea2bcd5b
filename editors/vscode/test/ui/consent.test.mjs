// Nothing runs and nothing is granted unless the user saw exactly that: keys, clicks and notifications in the window.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before } from "node:test";
import { filesystem, makeSandbox, openWindow } from "../sandbox.mjs";
import { openPage, openWaiting, press, steps } from "./support.mjs";

let sandbox;
let vs;
let agent;

before(async () => {
  const notes = { command: "mcp-sidecar", args: ["demo-server"] };
  sandbox = makeSandbox({ servers: { files: filesystem(), notes } });
  fs.writeFileSync(sandbox.file("mcp.json"), '{ "servers": {} }\n');
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

async function open() {
  vs = await openWindow(sandbox, { files: ["notes.md"] });
  await vs.status("MCP 2/2");
  await vs.view("MCP Sidecar");
  agent = await sandbox.agent("codex");
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);

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
/** The view is focused before its list, and keys go to the list. */
async function focusApprovals() {
  await vs.command("MCP Sidecar: Focus on Approvals View");
  await vs.page.locator(".sidebar .monaco-list:focus", { hasText: "write_file" }).waitFor();
}
const heading = (page, text) => page.locator("h1", { hasText: text }).waitFor();

let first;
let second;

const asked = step(
  "a key in the Approvals view answers nothing: the focused row may be another one than the selected",
  async () => {
    first = write("first.txt");
    await vs.status("MCP 1 waiting");
    second = move("notes.md", "moved.md");
    await vs.status("MCP 2 waiting");
    const selected = await openPage(vs, question("write_file"), "first.txt"); // selects the first row
    await heading(selected, "write_file");
    await focusApprovals();
    await vs.page.keyboard.press("ArrowDown"); // focuses the second one
    await vs.page.keyboard.press("Control+Enter");
    await vs.page.keyboard.press("Delete");
    await vs.page.keyboard.press("Enter"); // shows the focused row
    await heading(await vs.webviewWith("moved.md"), "move_file");
    await vs.status("MCP 2 waiting");
    assert.equal(exists("first.txt"), false, "the call that was selected, not focused, ran");
    assert.equal(exists("moved.md"), false);
  },
);

step("the context menu, opened by a key, denies the focused row and no other", asked, async () => {
  await focusApprovals();
  await vs.page.keyboard.press("Home");
  await vs.page.keyboard.press("ArrowDown");
  await vs.key("Shift+F10", vs.page.locator(".monaco-menu .action-item").first());
  const chosen = vs.page.locator(".monaco-menu .action-item.focused", { hasText: "Deny" });
  for (let key = 0; key < 5 && !(await chosen.isVisible()); key++) {
    await vs.page.keyboard.press("ArrowDown");
  }
  await vs.page.keyboard.press("Enter");
  assert.match(await second, /denied/);
  await vs.status("MCP 1 waiting");
  await question("write_file").waitFor();
});

step("the rows of questions have no button and no menu entry that grants", asked, async () => {
  const menu = vs.page.locator(".monaco-menu .action-item");
  await vs.click(question("write_file"), menu.first(), { button: "right" });
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

const opened = step(
  "Ctrl+Alt+Y opens the oldest question in full, with the focus on nothing that answers",
  asked,
  async () => {
    await vs.openFile("notes.md");
    const page = await vs.until(
      () => vs.page.keyboard.press("Control+Alt+Y"),
      limit => vs.webviewWith("written by an agent", limit),
    );
    await page.locator("body.live").waitFor();
    assert.match(await page.locator("main").innerText(), /first\.txt/);
    await vs.page.keyboard.press("Enter");
    await vs.page.keyboard.press("Space");
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), "H1");
    assert.equal(exists("first.txt"), false);
  },
);

step(
  "a key answers the question on the page, and is dead while the next question takes its place",
  opened,
  async () => {
    const next = write("next.txt");
    const page = await vs.webviewWith("Question 1 of 2");
    await page.locator("body.live").waitFor();
    // A hurried user: the second press was meant for the first question.
    await vs.page.keyboard.press("Control+Enter");
    await vs.page.keyboard.press("Control+Enter");
    assert.doesNotMatch(await first, /denied/);
    assert.equal(exists("first.txt"), true);
    const after = await vs.webviewWith("next.txt");
    await after.getByText("This is a different question").waitFor();
    await after.locator("body.live").waitFor();
    await vs.status("MCP 1 waiting");
    assert.equal(exists("next.txt"), false);
    await press(after, "Deny");
    assert.match(await next, /denied/);
    await allAnswered();
  },
);

step("a note that is half typed stays when another question arrives", async () => {
  const noted = write("noted.txt");
  const page = await openWaiting(vs, "MCP 1 waiting", "noted.txt");
  await page.locator("body.live").waitFor();
  await page.getByPlaceholder("why not").click();
  await vs.page.keyboard.type("it is ");
  const other = write("other.txt");
  await page.getByText("Question 1 of 2").waitFor();
  await vs.page.keyboard.type("still needed");
  assert.equal(await page.getByPlaceholder("why not").inputValue(), "it is still needed");
  // VS Code throws the page away while another tab covers it.
  await vs.openFile("notes.md");
  const again = await openPage(vs, vs.page.locator(".tab", { hasText: "Approval" }), "noted.txt");
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
  await vs.notification("wants to make 3 calls");
  const toasts = vs.page.locator(".notification-toast");
  assert.equal(await toasts.count(), 1, (await toasts.allInnerTexts()).join("\n"));
  await toasts.first().hover();
  assert.deepEqual(await toasts.first().locator(".monaco-button").allInnerTexts(), ["Review…"]);
  await vs.answer("wants to make 3 calls", "Review…");
  const page = await vs.webviewWith("Answer only this…");
  await page.locator("body.live").waitFor();
  const text = await page.locator("main").innerText();
  for (const name of ["a.txt", "b.txt", "c.txt"]) {
    assert.ok(text.includes(name), text);
  }
  await press(page, "Deny all 3");
  for (const call of calls) {
    assert.match(await call, /denied/);
  }
  await allAnswered();
});

step("calls of one agent are answered together: nothing is selected at first, and no key grants them", async () => {
  const calls = ["together-1.txt", "together-2.txt", "together-3.txt"].map(name => write(name));
  const page = await openWaiting(vs, "MCP 3 waiting", "Answer only this…");
  await page.locator("body.live").waitFor();
  assert.equal(await page.locator("input:checked").count(), 0);
  assert.equal(await page.getByRole("button", { name: /^Allow the selected calls once/ }).isDisabled(), true);
  await vs.page.keyboard.press("Control+Enter");
  await vs.page.keyboard.press("Enter");
  await vs.status("MCP 3 waiting");
  for (const name of ["together-1.txt", "together-3.txt"]) {
    await page.locator("section", { hasText: name }).getByRole("checkbox").check();
  }
  // One more arrives: what is ticked stays, and the new one is not.
  calls.push(write("together-4.txt"));
  await page.locator("section", { hasText: "together-4.txt" }).waitFor();
  await press(page, "Allow the selected calls once (2)");
  await Promise.all([calls[0], calls[2]]);
  assert.deepEqual(
    [1, 2, 3, 4].map(number => exists(`together-${number}.txt`)),
    [true, false, true, false],
  );
  await vs.status("MCP 2 waiting");
  await press(page, "Deny all 2");
  assert.match(await calls[1], /denied/);
  assert.match(await calls[3], /denied/);
  await allAnswered();
});

step("a question in view that is answered elsewhere says where", async () => {
  const calls = ["shell-1.txt", "shell-2.txt", "shell-3.txt"].map(name => write(name));
  const page = await openWaiting(vs, "MCP 3 waiting", "Answer only this…");
  const deny = () => sandbox.shell("deny", JSON.parse(sandbox.shell("approvals", "--json")).approvals[0].id);
  deny();
  await page.locator(".notice", { hasText: /write_file.* was answered: “Deny”, by the user in .*shell/ }).waitFor();
  assert.equal(await page.locator("section").count(), 2);
  deny();
  await page.getByText("This is a different question").waitFor(); // the last one of the group, alone
  deny();
  await page.getByText("Nothing is waiting for your answer").waitFor();
  assert.match(await page.locator("main").innerText(), /“Deny”, by the user in .*shell/);
  await Promise.all(calls);
  await allAnswered();
});

step("a double click on Allow once answers one question", async () => {
  const calls = [write("one.txt"), write("two.txt")];
  await vs.status("MCP 2 waiting");
  // Calls that are made at once arrive in any order.
  const page = await openPage(vs, question("one.txt"), /Question [12] of 2/);
  await page.locator("body.live").waitFor();
  await page.getByRole("button", { name: "Allow once", exact: true }).dblclick();
  const next = await vs.webviewWith("This is a different question");
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
  const page = await openWaiting(vs, "MCP 1 waiting", "from another agent");
  const waiting = write("waiting.txt");
  await page.getByText("Question 1 of 2").waitFor();
  other.close();
  await page.getByText("This is a different question").waitFor();
  await heading(page, "write_file");
  agent.close();
  await page.getByText("Nothing is waiting for your answer").waitFor();
  await waiting;
  assert.equal(exists("waiting.txt"), false);
  agent = await sandbox.agent("codex");
  await allAnswered();
});

step("a question about a file with unsaved changes says so, and shows the difference to them", async () => {
  await vs.openFile("notes.md");
  await vs.page.keyboard.press("Control+Home");
  await vs.page.keyboard.type("my own words");
  await vs.page.locator(".editor-group-container.active .view-line", { hasText: /my.own.words/ }).waitFor();
  await vs.page.locator(".tab.dirty", { hasText: "notes.md" }).waitFor();
  // The window is ahead of the extension. When a command of the extension has answered, it knows the text as well.
  await vs.command("MCP Sidecar: Open Config File…");
  await vs.page.locator(".quick-input-list .monaco-list-row", { hasText: "mcp.json" }).first().waitFor();
  await vs.page.keyboard.press("Escape");
  const waiting = write("notes.md", "# Notes\n");
  const page = await openWaiting(vs, "MCP 1 waiting", "This file has unsaved changes in an editor");
  assert.match(await page.locator(".diff .removed").first().innerText(), /my own words/);
  await press(page, "Deny");
  assert.match(await waiting, /denied/);
  await vs.openFile("notes.md");
  await vs.command("File: Revert File");
  await vs.page.locator(".tab.dirty", { hasText: "notes.md" }).waitFor({ state: "detached" });
  await allAnswered();
});

step("a file that is open shows what an approved call has changed in it", async () => {
  await vs.openFile("notes.md");
  const edits = [{ oldText: "# Notes", newText: "# Notes of the release" }];
  const edited = settled(agent.call("files__edit_file", { path: sandbox.file("notes.md"), edits }));
  await press(await openWaiting(vs, "MCP 1 waiting", "Would change"), "Allow once");
  assert.doesNotMatch(await edited, /denied/);
  await vs.openFile("notes.md");
  await vs.page.locator(".editor-group-container.active .view-line", { hasText: /Notes.of.the.release/ }).waitFor();
});

step("a lasting answer is confirmed with the way to take it back", async () => {
  const granted = write("granted.txt");
  const page = await openWaiting(vs, "MCP 1 waiting", "granted.txt");
  await page.locator("body.live").waitFor();
  await press(page, "Allow for this session");
  assert.doesNotMatch(await granted, /denied/);
  await vs.answer("`write_file` of `files` is allowed for this session", "Revoke the grant…");
  await vs.page.locator(".sidebar .monaco-list-row", { hasText: "allowed for this session" }).first().waitFor();
});

step("a click on a tool shows it, also one without arguments, and running it is a step with its name", async () => {
  await vs.command("View: Close All Editors");
  await vs.click(vs.treeItem("notes"), vs.treeItem("forget_notes"));
  const page = await openPage(vs, vs.treeItem("forget_notes"), "Deletes all notes");
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
