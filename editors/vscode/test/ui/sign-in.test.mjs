// Signing in to a real authorization server with a browser that cannot reach the machine of the sidecar: the user pastes the
// address of the page that it cannot load.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { after, before } from "node:test";
import { backend, extension, makeSandbox, openWindow } from "../sandbox.mjs";
import { steps } from "./support.mjs";

const fixture = name => path.resolve(extension, "../../tests/fixtures", name);

let issuer;
let base;
let sandbox;
let vs;
/** The address of the page that the browser could not load. */
let address;

before(async () => {
  issuer = spawn(backend("MCP_BACKEND_NODE"), [fixture("issuer.mjs"), backend("MCP_BACKENDS")], {
    env: { ...process.env, MACHINE_SECRET: "unused" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [printed] = await once(issuer.stdout, "data");
  base = String(printed).trim();
  sandbox = makeSandbox({ servers: { far: { url: `${base}/mcp` } } });
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
  issuer?.kill();
});

async function open() {
  vs = await openWindow(sandbox, { files: ["notes.md"] });
  await vs.view("MCP Sidecar");
  await vs.treeItem("far").getByText("needs sign-in").waitFor();
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);

const waiting = step("a browser that cannot load the last page leaves the sign-in waiting", async () => {
  // VS Code in a browser opens pages of this machine through its own server, so the page is opened elsewhere.
  const opened = new Promise(resolve => {
    vs.page.context().route("**/auth?**", async route => {
      resolve(new URL(route.request().url()).search);
      await route.abort();
    });
  });
  await vs.command("MCP Sidecar: Sign In to Server…");
  await vs.pick("far");
  const page = `${base}/auth${await opened}`;
  address = execFileSync("python3", [fixture("remote_browser.py"), page], { encoding: "utf8" }).trim();
  assert.match(address, /code=/);
  await vs.page.bringToFront();
});

step(
  "the notification leads to a box, which refuses another address and accepts that of the last page",
  waiting,
  async () => {
    const box = vs.quickInput();
    await vs.click(
      vs.page.locator(".notification-toast a", { hasText: "paste the address" }),
      box.getByText("Sign in to `far`"),
    );
    assert.equal(await box.locator("input.input").getAttribute("type"), "password");
    await vs.type("http://127.0.0.1:1/other");
    await box.getByText("This is not the address of the last page").waitFor();
    await box.locator("input.input").fill("");
    await vs.type(address);
    await vs.treeItem("far").getByText("connected").waitFor();
    await vs.page.locator(".notification-toast", { hasText: "Signing in to" }).waitFor({ state: "detached" });
    await box.waitFor({ state: "hidden" });
  },
);
