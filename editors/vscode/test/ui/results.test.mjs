// What a result looks like, how the log is searched, and that all of it works without a mouse and with a screen reader.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before } from "node:test";
import { filesystem, makeSandbox, openWindow } from "../sandbox.mjs";
import { openPage, steps } from "./support.mjs";

let sandbox;
let vs;

const CODE = "def f():\n    return '*a* <b>'\n\n# a comment, no heading\n";

before(async () => {
  const notes = { command: "mcp-sidecar", args: ["demo-server"] };
  sandbox = makeSandbox({ servers: { files: filesystem(), notes }, policy: { readOnly: "allow-session" } });
  fs.writeFileSync(sandbox.file("mcp.json"), '{ "servers": {} }\n');
  fs.writeFileSync(sandbox.file("code.py"), CODE);
  fs.writeFileSync(sandbox.file("large.log"), `${"2026-11-16 08:00:00 a line of a log\n".repeat(30_000)}the end\n`);
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

async function open() {
  vs = await openWindow(sandbox, {
    files: ["notes.md"],
    env: { ...sandbox.env, MCP_SIDECAR_BINARY: undefined, TZ: "Asia/Tokyo" },
  });
  await vs.status("MCP 2/2");
  await vs.view("MCP Sidecar");
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);
const box = () => vs.quickInput();
const key = name => vs.page.keyboard.press(name);

/** Types into the open input. A page has the focus for a moment when the input before it has closed. */
async function type(text) {
  const input = box().locator("input.input");
  for (let left = 5; (await input.inputValue()) !== text; left--) {
    assert.notEqual(left, 0, `the input has ${await input.inputValue()}`);
    await box().locator("input.input:focus").waitFor();
    await key("Control+A");
    await vs.page.keyboard.type(text);
  }
}

/** Runs a tool by keys alone. */
async function runByKeys(tool, given) {
  await vs.key("F1", box().locator("input.input"));
  await type(">MCP Sidecar: Run Tool…");
  await box().locator(".monaco-list-row", { hasText: "Run Tool…" }).first().waitFor();
  await key("Enter");
  await box().locator(".monaco-list-row", { hasText: "files" }).first().waitFor();
  await type(tool);
  // The descriptions of other tools name it, too.
  await box()
    .locator(".monaco-list-row.focused", { has: vs.page.getByText(tool, { exact: true }) })
    .waitFor();
  await key("Enter");
  await box().locator(".quick-input-title", { hasText: tool }).waitFor();
  await type(given);
  await key("Enter");
  await box()
    .locator(".monaco-list-row.focused", { hasText: `Run \`${tool}\`` })
    .waitFor();
  await key("Enter");
}

const shown = step("by keys alone a tool runs and its result is read: code is code", async () => {
  await runByKeys("read_text_file", sandbox.file("code.py"));
  const page = await vs.webviewWith("Run again…");
  assert.equal(await page.locator("pre").first().textContent(), CODE);
  assert.equal(await page.getByText("Structured content").count(), 0);
  // The focus is on the heading; Tab goes through everything that can be pressed.
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
  assert.equal(await focused(), "read_text_file");
  const reached = [];
  for (let press = 0; press < 7; press++) {
    await key("Tab");
    reached.push(await focused());
  }
  const buttons = ["Run again…", "Copy", "Open as document", "Insert into editor", "Text", "Markdown", "Raw"];
  assert.deepEqual(reached, buttons);
});

step("by keys alone the view is switched: markdown, and raw", shown, async () => {
  const page = await vs.webviewWith("Run again…");
  await page.locator("body.live").waitFor();
  await page.getByRole("button", { name: "Markdown" }).focus();
  await key("Enter");
  await page.locator(".rendered h1", { hasText: "a comment, no heading" }).waitFor();
  await page.getByRole("button", { name: "Raw" }).focus();
  await key("Enter");
  await page.locator("pre.json", { hasText: '"structuredContent"' }).first().waitFor();
  assert.equal(await page.getByRole("button", { name: "Raw" }).getAttribute("aria-pressed"), "true");
});

step("a result of a megabyte is there at once, and all of it is a document", async () => {
  await runByKeys("read_text_file", sandbox.file("large.log"));
  const page = await vs.webviewWith("more characters");
  const began = Date.now();
  await page.evaluate(() => document.body.getBoundingClientRect().height); // lays it out
  assert.ok(Date.now() - began < 2_000);
  await page.locator("body.live").waitFor();
  const focused = vs.page.locator(".editor-group-container.active .monaco-editor.focused").first();
  await vs.click(page.getByRole("button", { name: "Open as document" }).last(), focused);
  await key("Control+End");
  await vs.page.locator(".view-line", { hasText: /the.end/ }).waitFor();
});

step("the log is filtered by agent, by denied calls and by text, in the time of this place", async () => {
  const agents = [await sandbox.agent("codex"), await sandbox.agent("claude-code")];
  await agents[0].call("notes__echo", { text: "needle in a haystack" });
  await agents[1].call("notes__echo", { text: "another" });
  const denied = agents[1].call("notes__take_note", { text: "no" }).catch(error => error.message);
  await vs.status("MCP 1 waiting");
  const page = await vs.until(
    () => key("Control+Alt+Y"),
    limit => vs.webviewWith("take_note", limit),
  );
  await page.locator("body.live").waitFor();
  await key("Control+Delete");
  assert.match(JSON.stringify(await denied), /denied/);
  const calls = async () => {
    const view = vs.page.locator(".pane", { has: vs.page.locator('[aria-label^="Calls"]') }).last();
    return view.locator(".monaco-list-row").evaluateAll(rows => rows.map(row => row.ariaLabel));
  };
  const filter = async (choice, text) => {
    await vs.command("MCP Sidecar: Filter Calls…");
    await vs.pick(choice);
    if (text) {
      await vs.type(text);
    }
  };
  const until = async fits => {
    for (const end = Date.now() + 30_000; ; ) {
      const rows = await calls();
      if (rows.length > 0 && rows.every(fits)) {
        return rows;
      }
      assert.ok(Date.now() < end, rows.join("\n"));
      await new Promise(resolve => setTimeout(resolve, 100));
    }
  };
  await filter("calls by `codex`");
  await until(row => /asked by codex/.test(row));
  await filter("denied calls");
  assert.equal((await until(row => /take_note of notes, denied, asked by claude-code/.test(row))).length, 1);
  await filter("calls with a text…", "NEEDLE");
  const [found] = await until(row => /echo of notes, ok, asked by codex/.test(row));
  const [{ time }] = JSON.parse(sandbox.shell("calls", "--json", "--text", "needle")).calls;
  const options = { timeZone: "Asia/Tokyo", dateStyle: "short", timeStyle: "medium" };
  const [day, clock] = new Intl.DateTimeFormat("sv-SE", options).format(new Date(time)).split(" ");
  assert.ok(found.includes(` at ${clock},`), `${found} is not at ${clock}`);
  const opened = await openPage(vs, vs.treeItem("echo"), "needle in a haystack");
  const text = await opened.locator(".chips").innerText();
  assert.ok(text.includes(`${day} ${clock}`), `${text} does not have ${day} ${clock}`);
  await filter("all calls");
});

step("the status bar item and the rows of the trees say in words what their icons show", async () => {
  const item = await vs.status("MCP 2/2");
  const label = await item.locator("a").getAttribute("aria-label");
  assert.equal(label, "MCP Sidecar: 2 of 2 servers connected");
  const rows = await vs.page.locator(".sidebar .monaco-list-row").evaluateAll(all => all.map(row => row.ariaLabel));
  assert.ok(
    rows.some(row => /^server notes, connected · 9 tools/.test(row)),
    rows.join("\n"),
  );
});
