/** An MCP server uses a model of VS Code, after the user has allowed it. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { choose } from "../../src/sampling";
import { call, eventually, extension } from "./support";

describe("sampling", () => {
  it("uses the first model that matches a hint, or any model", () => {
    const models = ["gpt-5-mini", "claude-opus-5", "claude-sonnet-5"].map(id => ({ id, family: id, name: id }));
    const chosen = (...hints: string[]) =>
      choose(models, { messages: [], modelPreferences: { hints: hints.map(name => ({ name })) } })?.id;
    assert.equal(chosen("sonnet"), "claude-sonnet-5");
    assert.equal(chosen("gemini", "claude"), "claude-opus-5");
    assert.equal(chosen("gemini"), "gpt-5-mini");
    assert.equal(choose([], { messages: [] }), undefined);
  });

  it("returns the response of a model after the user has allowed it", async function () {
    if (!("registerLanguageModelChatProvider" in vscode.lm)) {
      this.skip(); // The test's model needs a newer VS Code.
    }
    const { sidecar } = await extension();
    await eventually("everything", () => sidecar.state.server("everything")?.status === "connected");
    await eventually("a model", async () => (await vscode.lm.selectChatModels()).length > 0);
    const answer = call("mcp__everything__trigger-sampling-request", { prompt: "live", maxTokens: 50 });
    const question = await eventually("the question", () =>
      sidecar.state.approvals.find(approval => approval.server === "everything"),
    );
    assert.match(question.title, /`everything` wants to use your model/);
    await sidecar.command("mcp.approval.resolve", { id: question.id, decision: "accept" });
    const result = await answer;
    assert.equal(result.isError, false);
    assert.match(JSON.stringify(result.content), /small, 2: .*evil/);
  });

  it("is refused when the user says no", async function () {
    if (!("registerLanguageModelChatProvider" in vscode.lm)) {
      this.skip();
    }
    const { sidecar } = await extension();
    const answer = call("mcp__everything__trigger-sampling-request", { prompt: "live", maxTokens: 50 });
    const question = await eventually("the question", () =>
      sidecar.state.approvals.find(approval => approval.server === "everything"),
    );
    await sidecar.command("mcp.approval.resolve", { id: question.id, decision: "decline" });
    assert.equal((await answer).isError, true);
  });
});
