// A language model for tests: it returns the number of messages and the last message reversed.
const vscode = require("vscode");

const models = ["small", "large"].map(id => ({
  id,
  name: `Test ${id}`,
  family: "test",
  version: "1",
  maxInputTokens: 10_000,
  maxOutputTokens: 1_000,
  capabilities: {},
}));

exports.activate = context => {
  // Models of extensions are newer than the oldest VS Code that is supported.
  const registered = vscode.lm.registerLanguageModelChatProvider?.("mcp-sidecar-test", {
    provideLanguageModelChatInformation: () => models,
    async provideLanguageModelChatResponse(model, messages, _options, progress) {
      const last = messages.at(-1).content.map(part => part.value ?? "");
      const backwards = [...last.join("")].reverse().join("");
      progress.report(new vscode.LanguageModelTextPart(`${model.id}, ${messages.length}: `));
      progress.report(new vscode.LanguageModelTextPart(backwards));
    },
    provideTokenCount: async () => 1,
  });
  if (registered) {
    context.subscriptions.push(registered);
  }
};
