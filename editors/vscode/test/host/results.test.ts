/** Results: text stays text, nothing is shown twice, and a large one is quick. */

import * as assert from "node:assert/strict";
import { when } from "../../src/clock";
import type { Content } from "../../src/protocol";
import { formatted, repeats } from "../../src/results/json";
import { body, documentOf, plainText, type View } from "../../src/results/page";
import { html } from "../../src/web/html";

const text = (value: string, more: Partial<Content> = {}): Content => ({ type: "text", text: value, ...more });
const LISTING = "[DIR] src\n[FILE] a_b_c.ts\n\n# not a heading\n    indented\n* no * list\n";

/** Marks what was rendered as markdown. */
const markdown = async (given: string) => html`<i>${given}</i>`;

async function page(content: Content[], structuredContent?: unknown, view: View = "text"): Promise<string> {
  return (await body({ server: "s", content, structuredContent }, view, markdown)).text;
}

describe("a result", () => {
  it("shows text as it is, and as markdown only if the server or the user says so", async () => {
    const escaped = LISTING.replaceAll("<", "&lt;");
    assert.ok((await page([text(LISTING)])).includes(`${escaped}</pre>`));
    assert.ok((await page([text("# A")], undefined, "markdown")).includes("<i># A</i>"));
    assert.ok((await page([text("# A", { mimeType: "text/markdown" })])).includes("<i># A</i>"));
    const resource = { uri: "a://b", mimeType: "text/markdown; charset=utf-8", text: "# A" };
    assert.ok((await page([{ type: "resource", resource }])).includes("<i># A</i>"));
    assert.ok(
      (await page([{ type: "resource", resource: { ...resource, mimeType: "text/x-rust" } }])).includes("<pre"),
    );
  });

  it("has a raw view with everything that the server sent", async () => {
    const content = [{ ...text("a"), annotations: { audience: ["user"] } } as Content];
    const raw = await page(content, { a: 1 }, "raw");
    assert.ok(raw.includes("&quot;audience&quot;") && raw.includes("&quot;structuredContent&quot;"), raw);
  });

  it("does not show the same content again as structured content", async () => {
    const twice: [Content[], unknown][] = [
      [[text('{"a": 1, "b": [2]}')], { b: [2], a: 1 }],
      [[text("plain words\n")], { result: "plain words" }],
      [[text('{"n":1}'), text('{"n":2}')], { result: [{ n: 1 }, { n: 2 }] }],
      [[text("one"), text("two")], { items: ["one", "two"] }],
    ];
    for (const [content, structured] of twice) {
      assert.equal(repeats(content, structured), true, JSON.stringify(structured));
      assert.ok(!(await page(content, structured)).includes("Structured"));
    }
    assert.equal(repeats([text("3 files")], { files: ["a", "b", "c"] }), false);
    assert.ok((await page([text("3 files")], { files: ["a"] })).includes("Structured content"));
    const alone = await page([], { a: 1 });
    assert.ok(!alone.includes("Structured") && alone.includes("&quot;a&quot;: 1"), alone);
  });

  it("indents JSON without changing a value, and copies exactly what was sent", () => {
    const sent = '{"id":12345678901234567890,"price":1.10,"list":[],"deep":{"a":[1,{"b":"x, {y}: \\"z\\""}]}}';
    assert.equal(
      formatted(sent),
      '{\n  "id": 12345678901234567890,\n  "price": 1.10,\n  "list": [],\n  "deep": {\n    "a": [\n      1,\n      {\n' +
        '        "b": "x, {y}: \\"z\\""\n      }\n    ]\n  }\n}',
    );
    for (const other of ["[not json", "plain", '"a string"', "12"]) {
      assert.equal(formatted(other), undefined, other);
    }
    assert.equal(plainText({ content: [text(sent)] }), sent);
    assert.equal(documentOf({ server: "s", content: [text(LISTING)] }, "text").language, "plaintext");
    assert.equal(documentOf({ server: "s", content: [text(LISTING)] }, "markdown").language, "markdown");
  });

  it("of a megabyte is a page of a quarter of it, with a way to the rest, in no time", async () => {
    const large = `${"a line of a log with <angle> brackets & more\n".repeat(25_000)}the end`;
    const began = performance.now();
    const shown = await page([text(large)], { result: large });
    const ms = performance.now() - began;
    assert.ok(
      shown.length < 400_000 && !shown.includes("the end") && shown.includes("more characters"),
      `${shown.length}`,
    );
    assert.ok(ms < 500, `${ms} ms`);
    assert.ok(documentOf({ server: "s", content: [text(large)] }, "text").text.endsWith("the end"));
  });
});

describe("times", () => {
  it("are those of the user's clock", () => {
    const before = process.env.TZ;
    try {
      process.env.TZ = "Asia/Tokyo";
      assert.equal(when("2026-11-16T20:05:09.123Z"), "2026-11-17 05:05:09");
      process.env.TZ = "America/New_York";
      assert.equal(when("2026-11-16T20:05:09.123Z"), "2026-11-16 15:05:09");
    } finally {
      if (before === undefined) {
        delete process.env.TZ;
      } else {
        process.env.TZ = before;
      }
    }
    assert.equal(when("not a time"), "not a time");
  });
});
