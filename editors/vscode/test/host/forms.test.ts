/** The pure parts: forms, pages, rows and names. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { approvalPage } from "../../src/approvals/page";
import { older } from "../../src/binary";
import { definition } from "../../src/commands/files";
import { isConfigFile, isSharedFile } from "../../src/files";
import { fields, initial, missing, parse, withText } from "../../src/form/schema";
import type { Approval } from "../../src/protocol";
import { languageOf, resourceOf, resourceUri, variables } from "../../src/resources";
import { media, plainText } from "../../src/results/page";
import { forwarded } from "../../src/settings";

const schema = {
  type: "object",
  required: ["text", "size"],
  properties: {
    note: { type: "string" },
    text: { type: "string", description: "what to\n  keep" },
    size: { type: "integer", minimum: 1 },
    mood: { type: "string", enum: ["good", "bad"], default: "good" },
    tags: { type: "array", items: { enum: ["a", "b"] } },
    more: { type: "object" },
    on: { type: ["boolean", "null"] },
  },
};

describe("a form from a schema", () => {
  it("asks for required fields first, by the kind of the schema", () => {
    const all = fields(schema);
    assert.deepEqual(
      all.map(field => `${field.name}: ${field.kind}`),
      ["text: text", "size: integer", "note: text", "mood: choice", "tags: choices", "more: json", "on: boolean"],
    );
    assert.equal(all[0]?.description, "what to keep");
    assert.equal(all[1]?.rule, "integer, ≥ 1");
  });

  it("starts with defaults and knows what is missing", () => {
    const all = fields(schema);
    const values = initial(all, { text: "x" });
    assert.deepEqual(values, { text: "x", mood: "good" });
    assert.deepEqual(
      missing(all, values).map(field => field.name),
      ["size"],
    );
    assert.deepEqual(withText(all, "selected"), { text: "selected" });
  });

  it("rejects values of the wrong kind", () => {
    const [, size, , , , more] = fields(schema);
    assert.ok(size && more);
    assert.deepEqual(parse(size, "3"), { value: 3 });
    assert.deepEqual(parse(size, "3.5"), { problem: "Enter a whole number." });
    assert.deepEqual(parse(size, " "), { problem: "Enter a whole number." });
    assert.deepEqual(parse(more, '{"a":1}'), { value: { a: 1 } });
    assert.ok("problem" in parse(more, "{"));
  });
});

describe("a question", () => {
  const question: Approval = {
    id: "1",
    kind: "tool",
    server: "demo",
    tool: "<b>",
    arguments: { text: '<img src=x onerror="x">' },
    title: "Run <script>?",
    detail: "",
    requester: { kind: "agent", name: "codex" },
    options: ["allow-once", "deny"],
    createdAt: "2026-11-16T08:00:00Z",
    expiresAt: "2026-11-16T08:05:00Z",
  };

  const alone = { place: 1, count: 1 };

  it("shows characters that hide or reorder text", () => {
    const page = approvalPage({ ...question, arguments: { path: "a\u202etxt.exe" } }, alone).text;
    assert.ok(page.includes("a⟨U+202E⟩txt.exe"), page);
  });

  it("shows which file a call would change, and how", () => {
    const change = {
      file: "/w/a.md",
      path: "a.md",
      isNew: false,
      after: "$& two\n",
      diff: "@@ -1 +1 @@\n-one\n+$& two",
    };
    const page = approvalPage({ ...question, change }, alone).text;
    assert.ok(
      page.includes("Would change <code>a.md</code>") && page.includes("-one") && page.includes('data-send="compare"'),
      page,
    );
    assert.ok(!approvalPage(question, alone).text.includes("compare"));
  });

  it("escapes text of servers and agents", () => {
    const page = approvalPage(question, { place: 1, count: 3 }).text;
    assert.ok(!page.includes("<script>") && !page.includes("<img") && !page.includes("<b>"));
    assert.ok(page.includes("Question 1 of 3") && page.includes('data-decision="allow-once"'));
  });
});

describe("pure functions", () => {
  it("compare versions, recognize files and parse definitions", () => {
    assert.deepEqual(
      ["0.0.9", "0.1.0", "0.10.0", "1.0.0-beta"].map(version => older(version, "0.1.0")),
      [true, false, false, false],
    );
    assert.ok(isConfigFile("/a/mcp.json") && !isConfigFile("/a/notmcp.json") && isConfigFile("/a/x.json", ["x.json"]));
    assert.ok(isSharedFile("/a/.mcp.json") && isSharedFile("/a/.vscode/mcp.json") && !isSharedFile("/a/mcp.json"));
    assert.deepEqual(definition(`npx -y "a b"`), { command: "npx", args: ["-y", "a b"] });
    assert.deepEqual(definition("https://example.test/mcp"), { url: "https://example.test/mcp" });
  });

  it("convert the URI of a resource there and back", () => {
    const uri = vscode.Uri.parse(resourceUri("Demo", "demo://notes/a?b=1#c").toString());
    assert.deepEqual(resourceOf(uri, ["other", "Demo"]), { server: "Demo", uri: "demo://notes/a?b=1#c" });
    assert.deepEqual(
      variables("x://{a}/{+b}{?c*}").map(one => one.name),
      ["a", "b", "c"],
    );
    assert.equal(languageOf("text/markdown; charset=utf-8"), "markdown");
  });

  it("show results without running anything in them", () => {
    assert.equal(plainText({ content: [{ type: "text", text: '{"a":1}' }] }), '{\n  "a": 1\n}');
    assert.ok(media("image/png", "AAAA").text.includes("data:image/png"));
    assert.ok(!media("image/svg+xml", "AAAA").text.includes("<img"));
    assert.ok(!media('image/png"><script>', "AAAA").text.includes("<script>"));
  });

  it("send `null` for a setting that is no longer set", () => {
    const settings = forwarded(name => (name === "servers.timeout" ? "5m" : undefined));
    const servers = settings.servers as Record<string, unknown>;
    assert.deepEqual([settings.audit, servers.timeout, servers.attempts], [null, "5m", null]);
  });
});
