// A tool that its server runs as a task: the question about it, its status while it runs, its own question, and its end.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { everything, makeSandbox, openWindow } from "../sandbox.mjs";
import { openPage, press, steps } from "./support.mjs";

const TOOL = "simulate-research-query";

let sandbox;
let vs;

before(async () => {
  sandbox = makeSandbox({ servers: { everything: everything() } });
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
});

async function open() {
  vs = await openWindow(sandbox, { files: ["notes.md"] });
  await vs.view("MCP Sidecar");
  await vs.treeItem("everything").getByText("connected").waitFor();
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);

/** Runs the tool from its form, and waits for the notification that shows its progress. */
async function run(topic) {
  await vs.command("MCP Sidecar: Run Tool…");
  await vs.page.locator(".quick-input-widget input.input").fill(TOOL);
  await vs.pick(TOOL);
  await vs.page.locator(".quick-input-title", { hasText: TOOL }).waitFor();
  await vs.type(topic);
  await vs.pick(`Run \`${TOOL}\``);
  return vs.page.locator(".notification-toast", { hasText: `Running \`${TOOL}\`` }).first();
}

step("an agent's call of such a tool asks, and after it is allowed the agent gets the report", async () => {
  const agent = await sandbox.agent("codex");
  await agent.request("tools/list");
  const called = agent.call(`everything__${TOOL}`, { topic: "owls" });
  const page = await openPage(vs, vs.treeItem(TOOL), "owls");
  await press(page, "Allow once");
  assert.match((await called).content[0].text, /# Research Report: owls/);
});

step("its status is shown while it runs, and then its result", async () => {
  // Each status is shown for a second, which a busy machine may miss, so the window notes all of them.
  await vs.page.evaluate(() => {
    window.toasts = new Set();
    const note = () => {
      for (const toast of document.querySelectorAll(".notification-toast")) window.toasts.add(toast.textContent);
    };
    new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  const toast = await run("bees");
  await vs.webviewWith("Research Report: bees");
  await toast.waitFor({ state: "detached" });
  const shown = await vs.page.evaluate(() => [...window.toasts].join());
  assert.match(shown, /Synthesizing findings/);
});

step("cancelled in the notification, it ends, and the log says so", async () => {
  // It runs for four seconds: if it ends before the click, it is run again.
  await vs.until(
    async timeout => {
      const toast = await run("cats");
      await toast.hover({ timeout });
      await toast.getByRole("button", { name: "Cancel" }).click({ timeout });
      await toast.waitFor({ state: "detached" });
    },
    async () => {
      const [last] = JSON.parse(sandbox.shell("calls", "--json", "--limit", "1")).calls;
      assert.deepEqual([last.tool, last.success], [TOOL, false]);
      assert.match(last.error, /cancel/);
    },
  );
});
