// The first hour of a user, in one window: trust a server, see its tools, call one, answer an agent, mend a file.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gone, makeDesk, openWindow } from "../desk.mjs";

let desk;
let vs;

before(async () => {
  desk = makeDesk();
  vs = await openWindow(desk, { files: ["mcp.json"] });
});
after(async () => {
  await vs?.close();
  await desk?.close();
});

let failed = false;

/** Each step builds on the one before. A picture of what was there when one fails is kept, where it is wanted. */
function step(name, run) {
  test(name, async t => {
    if (failed) {
      t.skip("a step before this one failed");
      return;
    }
    try {
      await run();
    } catch (error) {
      failed = true;
      if (process.env.VSCODE_TEST_PICTURES) {
        await vs.shot(`${process.env.VSCODE_TEST_PICTURES}/${name.replace(/\W+/g, "-")}.png`).catch(() => {});
      }
      throw error;
    }
  });
}

/** Presses a button of a page, which takes no click in its first moment: it may have been meant for the page before. */
async function press(page, name) {
  await page.locator("body.live").waitFor();
  await page.getByRole("button", { name, exact: true }).click();
}

step("a server of the project waits until its definition has been seen and trusted", async () => {
  await vs.status("MCP 1 waiting");
  await vs.view("MCP Sidecar");
  await vs.treeItem("waits until you trust it").waitFor();
  await vs.status("MCP 1 waiting").then(item => item.click());
  const page = await vs.webviewWith("demo-server");
  await press(page, "Trust");
  await vs.treeItem("9 tools").waitFor();
  await vs.status("MCP 1/1");
});

step("the tree has tools with their levels", async () => {
  await vs.treeItem("9 tools").click();
  await vs.treeItem("echo").waitFor();
  assert.match(await vs.treeItem("forget_notes").innerText(), /require-approval · destructive/);
});

step("lenses in the file tell the same", async () => {
  await vs.openFile("mcp.json");
  await vs.lens("9 tools").waitFor();
  await vs.lens("Restart").waitFor();
});

step("a tool is called by a form made from its schema, and its result is shown", async () => {
  await vs.command("MCP Sidecar: Call Tool…");
  await vs.pick("weather");
  await vs.type("Lisbon");
  await vs.pick("Run weather");
  const page = await vs.webviewWith("Lisbon");
  assert.match(await page.locator("main").innerText(), /"invented": true/);
});

step("an agent outside of the editor waits for an answer, and gets it", async () => {
  const agent = await desk.agent("codex");
  const answer = agent.call("demo__take_note", { text: "Release on Friday." });
  await vs.status("MCP 1 waiting").then(item => item.click());
  const page = await vs.webviewWith("Release on Friday.");
  assert.match(await page.locator("main").innerText(), /asked by the agent codex/);
  await press(page, "Allow once");
  assert.notEqual((await answer).isError, true);
  await vs.status("MCP 1/1");
});

step("a denied call does not run, and the agent reads why not", async () => {
  const agent = await desk.agent("codex");
  const answer = agent.call("demo__forget_notes");
  await vs.status("MCP 1 waiting").then(item => item.click());
  const page = await vs.webviewWith("forget_notes");
  await page.getByPlaceholder("why not").fill("they are still needed");
  await press(page, "Deny");
  assert.match(JSON.stringify(await answer.catch(error => error.message)), /they are still needed/);
});

step("a question of a server is a form, and the call goes on with the answer", async () => {
  await vs.command("MCP Sidecar: Call Tool…");
  await vs.page.locator(".quick-input-widget input.input").fill("ask_name");
  await vs.pick("ask_name");
  await vs.status("MCP 1 waiting").then(item => item.click());
  await press(await vs.webviewWith("Wants to know"), "Fill in…");
  await vs.type("Ada");
  await vs.pick("Send");
  const page = await vs.webviewWith("Ada");
  assert.match(await page.locator("main").innerText(), /ask_name/);
});

step("the log has every call with who asked and what came of it", async () => {
  await vs.view("MCP Sidecar");
  await vs.treeItem("demo · codex").waitFor();
  await vs.treeItem("demo · you").waitFor();
});

step("complaints stand in the file, and a quick fix mends one", async () => {
  await vs.openFile(".cursor/mcp.json");
  const problems = await vs.problems();
  assert.ok(
    problems.some(problem => problem.includes("comand")),
    problems.join("\n"),
  );
  await vs.quickFix("comand", "command");
  await vs.page
    .locator(".markers-panel .monaco-list-row", { hasText: "comand" })
    .first()
    .waitFor({ state: "detached" });
  assert.match(await vs.editorText(), /"command": "mcp-sidecar"/);
  await vs.command("File: Revert File");
});

step("the sidecar can be restarted, and what was trusted comes back", async () => {
  await vs.command("MCP Sidecar: Restart Sidecar");
  await vs.status("MCP 1/1");
  await vs.view("MCP Sidecar");
  await vs.treeItem("9 tools").waitFor();
});

step("closing the window leaves no process behind", async () => {
  await vs.close();
  await desk.close();
  await gone(desk.processes);
});
