// The sidecar decides, the window shows: what can be done with a server, how a form looks, what a typed line means.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { makeSandbox, openWindow } from "../sandbox.mjs";
import { openPage, openWaiting, press, steps } from "./support.mjs";

let sandbox;
let vs;
let agent;

before(async () => {
  const forms = { command: "node", args: [fileURLToPath(new URL("form-server.mjs", import.meta.url))] };
  sandbox = makeSandbox({ servers: { forms }, policy: { commands: ["node"] } });
  fs.rmSync(sandbox.file(".cursor"), { recursive: true }); // its mistakes would fill the list of problems
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

async function open() {
  // JSON is typed as it is: VS Code adds no brackets. It saves by itself, which does not end the editing of a value.
  const settings = {
    "editor.autoClosingBrackets": "never",
    "editor.autoSurround": "never",
    "files.autoSave": "afterDelay",
  };
  vs = await openWindow(sandbox, { files: ["notes.md"], settings });
  await vs.status("MCP 1/");
  await vs.view("MCP Sidecar");
  agent = await sandbox.agent("codex");
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);

const box = () => vs.quickInput();

/** Chooses a line of the list with this title. One list follows another, so a line alone does not say which it is in. */
async function choose(title, line) {
  await titled(title);
  await vs.pick(line);
}

/** Enters a text in the input box with this title. */
async function enter(title, text) {
  await titled(title);
  await vs.type(text);
}

function titled(title) {
  return box().locator(".quick-input-title", { hasText: title }).waitFor();
}

step("a server that a rule forbids shows the reason, and trust is not offered", async () => {
  const row = vs.treeItem("demo");
  await row.waitFor();
  assert.match(await row.innerText(), /failed: .*not in the list of allowed programs/);
  await row.hover();
  const labels = () => row.locator(".action-label").evaluateAll(all => all.map(one => one.ariaLabel ?? ""));
  assert.deepEqual(
    (await labels()).filter(label => /trust|start/i.test(label)),
    [],
  );
  const menu = vs.page.locator(".monaco-menu .action-item");
  await vs.click(row, menu.first(), { button: "right" });
  const entries = (await menu.allInnerTexts()).map(text => text.trim());
  assert.deepEqual(
    entries.filter(entry => /trust|start|stop|log/i.test(entry)),
    [],
  );
  assert.ok(
    entries.some(entry => entry.startsWith("Disable Server")) && entries.some(entry => entry.startsWith("Move")),
  );
  await vs.page.keyboard.press("Escape");
  await vs.command("MCP Sidecar: Review and Trust Server…");
  await vs.notification("There is no server to choose from");
});

const formed = step("a form has objects, lists and choices, and is checked while it is filled in", async () => {
  await vs.command("MCP Sidecar: Run Tool…");
  await vs.pick("plan_trip");
  await enter("Where", "Lisbon");
  await choose("Where", "country");
  await vs.pick("Portugal");
  await choose("Where", "Done");
  await choose("People", "Add one more…");
  await enter("People › 1", "Ada");
  await choose("People › 1", "age");
  await box().locator("input.input").fill("200");
  await box().getByText("200 is greater than the maximum of 120").waitFor();
  await vs.page.keyboard.press("Enter"); // is not accepted
  await box().getByText("200 is greater than the maximum of 120").waitFor();
  await vs.type("36");
  await choose("People › 1", "Done");
  await vs.pick("Add one more…");
  await enter("People › 2", "Grace");
  await choose("People › 2", "Done");
  await box().locator(".monaco-list-row", { hasText: "Grace" }).waitFor();
  await choose("People", "Done");
  await vs.pick("Days");
  await box().locator("input.input").fill("three");
  await box().getByText("is not of type").waitFor();
  await vs.type("3");
  await vs.pick("Description"); // A long text is a document.
  await vs.page.locator(".tab.active", { hasText: "Description" }).waitFor();
  await vs.replaceText("by train\nand by boat");
  await vs.page.keyboard.press("Control+S");
  await box().locator(".monaco-list-row", { hasText: "by train ⏎ and by boat" }).waitFor();
  await vs.pick("Run `plan_trip`");
  const page = await vs.webviewWith("Run again…");
  assert.deepEqual(JSON.parse(await page.locator("pre.json").first().innerText()), {
    where: { city: "Lisbon", country: "PT" },
    people: [{ name: "Ada", age: 36 }, { name: "Grace" }],
    days: 3,
    description: "by train\nand by boat",
  });
});

step("a call that is run again keeps its line breaks, also when another value is changed", formed, async () => {
  await press(await vs.webviewWith("Run again…"), "Run again…");
  await choose("`plan_trip` of `forms`", "Days");
  await vs.type("4");
  await choose("`plan_trip` of `forms`", "Run `plan_trip`");
  const page = await vs.webviewWith("Run again…");
  await page.locator("pre.json", { hasText: '"days": 4' }).first().waitFor();
  const { days, description } = JSON.parse(await page.locator("pre.json").first().innerText());
  assert.deepEqual([days, description], [4, "by train\nand by boat"]);
});

const left = step("a form that is left keeps what was entered, and says so when it is opened again", async () => {
  await vs.command("MCP Sidecar: Run Tool…");
  await vs.pick("plan_trip");
  await enter("Where", "Oslo");
  await choose("Where", "Done");
  await titled("People");
  await vs.page.keyboard.press("Escape"); // back to all values
  await row("Run `plan_trip`").waitFor();
  await row("Oslo").waitFor();
  await vs.page.keyboard.press("Escape");
  await box().waitFor({ state: "hidden" });
  await vs.command("MCP Sidecar: Run Tool…");
  await vs.pick("plan_trip");
  await titled("People");
  await vs.page.keyboard.press("Escape");
  await row("Oslo").waitFor();
  await row("Start over").waitFor();
});

step(
  "JSON is edited as a document with the schema of the tool, and comes back as it was typed if it is broken",
  left,
  async () => {
    await vs.pick("Edit as JSON…");
    const editor = vs.page.locator(".editor-group-container.active");
    await editor.locator(".tab.active", { hasText: "arguments.json" }).waitFor();
    await vs.replaceText('{ "where": { "city": "Rome" }, "people": [{ "name": "Ada" }], "days": 99 }');
    await vs.problems();
    await vs.page.locator(".markers-panel .monaco-list-row", { hasText: "maximum of 14" }).waitFor();
    await vs.page.locator(".tab.active", { hasText: "arguments.json" }).click();
    const broken = '{ "where": { "city": "Rome" }, "people": [{ "name": "Ada" }], "days": ';
    await vs.replaceText(broken);
    await vs.page.keyboard.press("Control+S");
    await vs.page.locator(".notification-toast", { hasText: "This is not a JSON object" }).waitFor();
    await vs.page.locator(".tab.active", { hasText: "arguments.json" }).waitFor();
    await vs.page.locator(".view-line", { hasText: "Rome" }).waitFor();
    await vs.replaceText(`${broken}5 }`);
    await vs.page.keyboard.press("Control+S");
    await row("Rome").waitFor();
    await vs.pick("Run `plan_trip`");
    const page = await vs.webviewWith("Rome");
    assert.equal(JSON.parse(await page.locator("pre.json").first().innerText()).days, 5);
    await vs.page.keyboard.press("Control+J"); // hides the Problems view
  },
);

function row(text) {
  return box().locator(".monaco-list-row", { hasText: text }).first();
}

const TRIP = { where: { city: "Oslo" }, people: [{ name: "Ada" }], days: 3 };
const ALLOW = "Allow `book_trip` once, with these arguments";

/** An agent asks for a call; returns its page and the answer that the agent gets. */
async function asked(given) {
  const answer = agent.call("forms__book_trip", given).catch(error => error.message);
  const page = await openWaiting(vs, "MCP 1 waiting", "Edit arguments, then allow…");
  return { page, answer: answer.then(one => JSON.stringify(one)) };
}

async function edit(page) {
  await press(page, "Edit arguments, then allow…");
  await titled("wants to run `book_trip`");
}

const changed = step(
  "the arguments of a call can be changed before it is allowed, and are checked as they are typed",
  async () => {
    const { page, answer } = await asked(TRIP);
    await edit(page);
    await vs.page.keyboard.press("Enter"); // the first line allows nothing
    await box().waitFor({ state: "hidden" });
    await edit(page);
    await vs.pick("Days");
    await box().locator("input.input").fill("99");
    await box().getByText("99 is greater than the maximum of 14").waitFor();
    await vs.type("5");
    await box().locator(".monaco-list-row", { hasText: "Days" }).getByText("5", { exact: true }).waitFor();
    await vs.page.keyboard.press("Escape");
    await vs.status("MCP 1 waiting");
    await page.locator("h1", { hasText: "book_trip" }).waitFor();
    await edit(page);
    await box().locator(".monaco-list-row", { hasText: "Days" }).getByText("3", { exact: true }).waitFor();
    await vs.pick("Days");
    await vs.type("4");
    await vs.pick(ALLOW);
    const text = await answer;
    assert.match(text, /\\"days\\":4/);
    assert.match(text, /changed/, "the agent is not told");
    await vs.status("MCP 1/");
    const [call] = JSON.parse(sandbox.shell("calls", "--json", "--limit", "1")).calls;
    assert.deepEqual(
      [call.arguments, call.requestedArguments, call.decision],
      [{ ...TRIP, days: 4 }, TRIP, "allow-once"],
    );
  },
);

step("the log keeps the arguments as they were requested", changed, async () => {
  const page = await openPage(vs, vs.treeItem("book_trip"), "Arguments before you changed them");
  const [, , requested] = await page.locator("pre").allInnerTexts();
  assert.deepEqual(JSON.parse(requested), TRIP);
});

step("a question that is answered elsewhere closes its form, which says so and sends nothing", async () => {
  const { page, answer } = await asked({ ...TRIP, days: 6 });
  await edit(page);
  await vs.pick("Days");
  await box().locator("input.input").fill("7");
  const [{ id }] = JSON.parse(sandbox.shell("approvals", "--json")).approvals;
  sandbox.shell("deny", id);
  assert.match(await answer, /denied/);
  await box().waitFor({ state: "hidden" });
  assert.match(await vs.notification("Nothing was sent"), /`book_trip`/);
});

const typed = step(
  "a command line stays while the focus is elsewhere or it is wrong, is split like in a shell, and becomes a form",
  async () => {
    await vs.command("MCP Sidecar: Add Server…");
    await vs.pick("Another program or address…");
    await box().locator("input.input").fill('other -e "a b');
    await box().getByText("unclosed quote").waitFor();
    await vs.page.keyboard.press("Enter"); // is not accepted
    const typed = `other -e "a b" --name='c d'`;
    await box().locator("input.input").fill(typed);
    await vs.page.locator(".editor-group-container").first().click();
    assert.equal(await box().locator("input.input").inputValue(), typed);
    await box().locator("input.input").press("Enter");
    await choose("Add a server", "Name");
    await box().locator("input.input").fill("no__good");
    await box().locator(".quick-input-message", { hasText: "__" }).waitFor();
    await vs.page.keyboard.press("Enter"); // is not accepted
    await vs.type("typed");
    await choose("Add a server", "Environment");
    await choose("Environment", "Add one more…");
    await enter("Environment › 1", "MODE");
    await choose("Environment › 1", "Value");
    await vs.type("fast");
    await choose("Environment › 1", "Done");
    await choose("Environment", "Done");
    await choose("Add a server", /File/);
    await vs.pick("mcp.local.json");
    await choose("Add a server", "Add the server");
    assert.match(await vs.notification("`typed` is in"), /mcp\.local\.json/);
    await vs.treeItem("typed").waitFor();
    const { servers } = JSON.parse(fs.readFileSync(sandbox.file("mcp.local.json"), "utf8"));
    const args = ["-e", "a b", "--name=c d"];
    assert.deepEqual(servers.typed, { command: "other", args, env: { MODE: "fast" } });
  },
);

step("the same form edits a server, and what it does not show stays", typed, async () => {
  const file = sandbox.file("mcp.local.json");
  const before = fs.readFileSync(file, "utf8");
  fs.writeFileSync(file, before.replace('"command"', '// mine\n      "tools": { "x": "deny" },\n      "command"'));
  // The message about adding it stays, because it has buttons, and looks the same.
  await vs.command("Notifications: Clear All Notifications");
  await vs.command("MCP Sidecar: Edit Server…");
  await vs.pick("typed");
  await choose("Edit the server `typed`", "Description");
  await vs.type("for tests");
  await choose("Edit the server `typed`", "Save");
  await vs.notification("`typed` is in");
  const text = fs.readFileSync(file, "utf8");
  assert.match(text, /\/\/ mine/);
  assert.match(text, /"description": "for tests"/);
  assert.match(text, /"tools": \{ "x": "deny" \}/);
  // Its values were not shown, and are not lost.
  assert.match(text, /"MODE": "fast"/);
});

step("the placeholder of a template is asked for, and never written", async () => {
  await vs.command("MCP Sidecar: Add Server…");
  await box().locator("input.input").fill("npm package");
  await vs.pick("npm package");
  await titled("Add a server");
  await box().locator("input.input").fill("package");
  await box().locator(".quick-input-message", { hasText: "enter the real npm package" }).waitFor();
  await vs.type("@example/server");
  await vs.pick(/File/);
  await vs.pick("mcp.local.json");
  await choose("Add a server", "Add the server");
  await vs.notification("`npx` is in");
  const text = fs.readFileSync(sandbox.file("mcp.local.json"), "utf8");
  assert.match(text, /"-y",\s*"@example\/server"/);
});
