// A server of the MCP registry is searched, its exact command is shown, and it is written only after the form is sent.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before } from "node:test";
import { extension, makeSandbox, openWindow } from "../sandbox.mjs";
import { steps } from "./support.mjs";

let registry;
let sandbox;
let vs;

/** An API like that of the MCP registry, on loopback. */
function answer(request, response) {
  const all = JSON.parse(fs.readFileSync(path.resolve(extension, "../../tests/fixtures/registry.json"), "utf8"));
  const name = /^\/v0\.1\/servers\/(.+)\/versions\/latest$/.exec(request.url)?.[1];
  const found = name && all.servers.find(({ server }) => server.name === decodeURIComponent(name));
  response.end(JSON.stringify(found ?? all));
}

before(async () => {
  registry = http.createServer(answer).listen(0, "127.0.0.1");
  await new Promise(resolve => registry.once("listening", resolve));
  sandbox = makeSandbox();
  const settings = `[registry]\nurl = "http://127.0.0.1:${registry.address().port}"\n`;
  fs.writeFileSync(path.join(sandbox.env.MCP_SIDECAR_CONFIG_DIR, "config.toml"), settings);
  await open();
});
after(async () => {
  await vs?.close();
  await sandbox?.close();
  registry?.close();
});

async function open() {
  vs = await openWindow(sandbox, { files: ["notes.md"] });
  await vs.view("MCP Sidecar");
  await vs.treeItem("demo").waitFor();
}

const step = steps(
  () => vs,
  () => sandbox,
  open,
);

step("a server of the registry is picked, its exact command is shown, and then it is written", async () => {
  const before = fs.readFileSync(sandbox.file("mcp.json"), "utf8");
  await vs.command("MCP Sidecar: Add Server…");
  await vs.pick("Search the MCP registry…");
  await vs.type("weather");
  await vs.page.locator(".quick-input-widget input.input[placeholder^='Add which']").waitFor();
  await vs.pick("io.github.example/weather");
  const box = vs.page.locator(".quick-input-widget");
  await box.locator(".quick-input-list").getByText("@example/weather-mcp@1.4.0").first().waitFor();
  assert.equal(fs.readFileSync(sandbox.file("mcp.json"), "utf8"), before, "nothing is written before the form is sent");
  await vs.pick("Add the server");
  await vs.treeItem("weather").waitFor();
  const files = ["mcp.json", "mcp.local.json"].map(sandbox.file).filter(file => fs.existsSync(file));
  const written = files.map(file => fs.readFileSync(file, "utf8")).join("\n");
  assert.match(written, /@example\/weather-mcp@1\.4\.0/);
});
