/** The pure parts: forms, pages, rows and names. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { approvalPage, groupPage } from "../../src/approvals/page";
import { older } from "../../src/binary";
import { isConfigFile, isSharedFile } from "../../src/files";
import { Entered, initial, shown, withText } from "../../src/form/entered";
import type { Approval, Field } from "../../src/protocol";
import { languageOf, resourceOf, resourceUri, variables } from "../../src/resources";
import { media } from "../../src/results/page";
import { forwarded } from "../../src/settings";
import { connected, extension } from "./support";

const field = (name: string, kind: Field["kind"], more: Partial<Field> = {}): Field => ({
  name,
  title: name,
  kind,
  required: false,
  rule: "",
  ...more,
});

describe("a form", () => {
  it("starts with defaults, unless a value is given", () => {
    const fields = [field("size", "integer"), field("text", "text"), field("mood", "choice", { default: "good" })];
    assert.deepEqual(initial(fields, { text: "x" }), { text: "x", mood: "good" });
    assert.deepEqual(initial(fields, { mood: "bad" }), { mood: "bad" });
    assert.deepEqual(withText(fields, "selected"), { text: "selected" });
  });

  it("changes and removes values inside objects and lists", async () => {
    const form = new Entered(async values => ({ arguments: values, problems: [] }));
    await form.set(["people", 0, "name"], "Ada");
    await form.set(["people", 1], { name: "Grace" });
    await form.set(["where", "city"], "Lisbon");
    assert.deepEqual(form.values, { people: [{ name: "Ada" }, { name: "Grace" }], where: { city: "Lisbon" } });
    await form.set(["people", 0], undefined);
    await form.set(["where", "city"], undefined);
    assert.deepEqual(form.checked.arguments, { people: [{ name: "Grace" }], where: {} });
    assert.equal(form.at(["people", 0, "name"]), "Grace");
  });

  it("shows each problem at its field, and the others at the form", async () => {
    const problems = [
      { path: "/a~1b/0", message: "too short" },
      { path: "/ab", message: "too long" },
      { path: "", message: '"c" is a required property' },
    ];
    const form = new Entered(async values => ({ arguments: values, problems }));
    await form.set([], {});
    assert.equal(form.problem(["a/b"]), "0: too short");
    assert.equal(form.problem(["a/b", 0]), "too short");
    assert.equal(form.problem(["a"]), "");
    assert.equal(form.otherProblem([], ["a/b", "ab"]), '"c" is a required property');
  });

  it("rejects values of the wrong kind, as the sidecar does", async () => {
    const { sidecar } = await extension();
    await connected("demo");
    const tool = "mcp__demo__roll_dice";
    const { fields } = await sidecar.command("mcp.tool.form", { tool });
    const form = new Entered(values => sidecar.command("mcp.form.check", { tool, values }));
    await form.set([], initial(fields));
    for (const text of ["six", "3.5", " "]) {
      assert.notEqual(await form.problemWith(["sides"], text), "", text);
    }
    assert.equal(await form.problemWith(["sides"], "3"), "");
    await form.set(["sides"], "3");
    assert.equal(form.checked.arguments.sides, 3);
  });

  it("shows choices by their titles and hides secrets", () => {
    const color = field("color", "choice", { choices: [{ value: 1, title: "red" }] });
    assert.deepEqual([shown(color, 1), shown(color, 2), shown(field("key", "secret"), "x")], ["red", "2", "•••"]);
    assert.equal(shown(field("text", "text"), "a\n  b"), "a ⏎ b");
    const inside = field("one", "object", { fields: [color, field("key", "secret")] });
    const list = field("all", "list", { item: inside });
    assert.equal(
      shown(list, [
        { color: 1, key: "x" },
        { key: "y", more: [2] },
      ]),
      "color: red, key: •••; key: •••, more: [2]",
    );
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
    summary: "",
    detail: "",
    requester: { kind: "agent", name: "codex" },
    options: ["allow-once", "deny"],
    answers: [
      { decision: "allow-once", label: "Allow once", grants: true, lasts: false },
      { decision: "deny", label: "Deny", grants: false, lasts: false },
    ],
    createdAt: "2026-11-16T08:00:00Z",
    expiresAt: "2026-11-16T08:05:00Z",
  };

  const alone = { place: 1, count: 1 };

  it("shows characters that hide or reorder text", () => {
    const hidden = { ...question, tool: "read\u200b_file", arguments: { path: "a\u202etxt.exe" } };
    const group = { id: "g", kind: "tool" as const, title: "", ids: ["1"], answers: [] };
    for (const { text } of [approvalPage(hidden, alone), groupPage(group, [hidden], alone)]) {
      assert.ok(text.includes("a⟨U+202E⟩txt.exe") && text.includes("read⟨U+200B⟩_file"), text);
    }
  });

  it("shows the beginning of a very large argument, and a button for all of it", () => {
    const large = `${"x".repeat(300_000)}the end`;
    const page = approvalPage({ ...question, arguments: { large, small: "y" } }, alone).text;
    assert.ok(page.includes("37863 more characters") && page.includes('data-send="arguments"'), page.slice(-2_000));
    assert.ok(!page.includes("the end") && page.length < 300_000 && page.includes(">y</pre>"));
    assert.ok(!approvalPage(question, alone).text.includes('data-send="arguments"'));
  });

  it("shows which file a call would change, and how", () => {
    const change = {
      file: "/w/a.md",
      path: "a.md",
      isNew: false,
      after: "$& two\n",
      diff: "@@ -1 +1 @@\n-one\n+$& two",
      unsaved: false,
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
  it("compare versions and recognize files", () => {
    assert.deepEqual(
      ["0.0.9", "0.1.0", "0.10.0", "1.0.0-beta"].map(version => older(version, "0.1.0")),
      [true, false, false, false],
    );
    assert.ok(isConfigFile("/a/mcp.json") && !isConfigFile("/a/notmcp.json") && isConfigFile("/a/x.json", ["x.json"]));
    assert.ok(isSharedFile("/a/.mcp.json") && isSharedFile("/a/.vscode/mcp.json") && !isSharedFile("/a/mcp.json"));
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
