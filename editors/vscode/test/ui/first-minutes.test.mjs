// The first minutes: the program is missing, a tour, the first server, and a file that is broken.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before } from "node:test";
import { makeSandbox, openWindow } from "../sandbox.mjs";
import { press, steps } from "./support.mjs";

let sandbox;
let vs;

before(async () => {
  sandbox = makeSandbox();
  fs.rmSync(sandbox.file("mcp.json"));
  fs.rmSync(sandbox.file(".cursor"), { recursive: true });
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

async function open() {
  vs = await openWindow(sandbox, {
    files: ["notes.md"],
    machineSettings: { "mcpSidecar.server.path": "/nowhere/mcp-sidecar" },
  });
  await vs.view("MCP Sidecar");
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);
const box = () => vs.quickInput();
const sidebar = () => vs.page.locator(".sidebar");

step("a folder without config files offers to add a server, to import servers, and a tour", async () => {
  for (const name of ["Add a Server", "Import from Another Program", "Start"]) {
    await sidebar().getByRole("button", { name }).waitFor();
  }
  const tour = vs.page.locator(".gettingStartedContainer");
  await vs.click(sidebar().getByText("Take the tour"), tour.getByText("Get started with MCP Sidecar").first());
  for (const title of ["Add a server", "Trust it", "Run a tool", "Connect an agent", "Decide what runs"]) {
    await tour.getByText(title, { exact: true }).first().waitFor();
  }
  await vs.command("View: Close All Editors");
});

const started = step(
  "without the program there is a button that chooses it, and the sidecar starts with the choice",
  async () => {
    await vs.click(sidebar().getByRole("button", { name: "Start" }), sidebar().getByText("was not found"));
    await vs.notification("Cannot run /nowhere/mcp-sidecar");
    const path = box().locator("input.input");
    await vs.click(sidebar().getByRole("button", { name: "Choose the Program…" }), path);
    // The dialog enters the folder that it starts in.
    for (const until = Date.now() + 30_000; !(await path.inputValue()).endsWith("/") && Date.now() < until; ) {
      await vs.page.waitForTimeout(50);
    }
    await box().locator(".monaco-list-row").first().waitFor();
    await path.fill(sandbox.binary);
    await box().locator(".monaco-list-row", { hasText: "mcp-sidecar" }).waitFor(); // the dialog has read the folder
    await vs.click(box().getByRole("button", { name: "Choose" }), sidebar().getByText("No MCP servers yet"));
    await vs.command("Notifications: Clear All Notifications");
  },
);

const added = step(
  "the first server is written to a file, which the message names, and a button leads to the question",
  started,
  async () => {
    await vs.click(sidebar().getByRole("button", { name: "Add a Server" }), box());
    await box().locator("input.input").fill("demo");
    await vs.pick("Demo");
    await vs.pick("Add the server");
    assert.match(await vs.notification("`demo` is in"), /`demo` is in mcp\.json\./);
    await vs.answer("`demo` is in", "Trust `demo`…");
    await press(await vs.webviewWith("demo-server"), "Trust");
    await vs.treeItem("9 tools").waitFor();
  },
);

step("the form of a server that is in a file writes it again, and the message opens the file", added, async () => {
  await vs.command("MCP Sidecar: Edit Server…");
  await vs.pick("demo");
  await vs.pick("Save");
  await vs.answer("`demo` is in", "Open File");
  await vs.page.locator(".tab.active", { hasText: "mcp.json" }).waitFor();
});

step("a brace and Enter make an object, and nothing else", added, async () => {
  await vs.openFile("mcp.json");
  await vs.lens("9 tools").waitFor();
  await focusEditor();
  await vs.page.keyboard.press("Control+A");
  await vs.page.keyboard.press("Delete");
  await vs.page.keyboard.type('{ "servers": { "a": ');
  await vs.page.keyboard.type("{");
  // Completion by request works there: only the brace does not ask for it.
  await vs.page.keyboard.press("Enter");
  await vs.page.keyboard.type("x");
  const text = (await vs.editorText()).replace(/\s+/g, "");
  assert.ok(!text.includes('"type"') && !text.includes("stdio"), text);
  await vs.page.keyboard.press("Escape");
  await vs.command("File: Revert File");
});

step(
  "a file that is saved with a mistake says in its lenses that the last valid version stays in effect",
  added,
  async () => {
    await vs.openFile("mcp.json");
    await vs.lens("9 tools").waitFor();
    await focusEditor();
    await vs.page.keyboard.press("Control+End");
    await vs.page.keyboard.type("oops {");
    await vs.page.keyboard.press("Control+S");
    await vs.lens("its last valid version stays in effect").waitFor();
    await vs.treeItem("9 tools").waitFor();
    const problems = await vs.problems();
    const lines = problems.filter(problem => /Ln \d+/.test(problem));
    assert.equal(new Set(lines).size, lines.length, problems.join("\n"));
  },
);

async function focusEditor() {
  await vs.page.locator(".editor-group-container.active .view-lines").first().click();
  await vs.editorFocused();
}
