// What every agent must be able to do. Each case has a stage: see stage.mjs. `shows` says what it shows, for the table in
// docs/agents.md. `limits` names the agents that cannot do it: what the table says instead, and how such a cell must fail,
// so that the list stays true.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { SEARCH } from "./model.mjs";

const NOTE = ["take_note", { text: "milk" }];

/** Runs the agent until the editor has its question about the note, with its name and its arguments. */
async function askForNote(stage, editor) {
  const printed = stage.prompt([NOTE]);
  const question = await beforeItEnds(
    editor.question(one => one.kind === "tool"),
    printed,
  );
  assert.equal(question.tool, "take_note");
  assert.deepEqual(question.arguments, { text: "milk" });
  assert.equal(question.requester.kind, "agent");
  assert.match(question.requester.name, stage.agent.reports);
  return { printed, question };
}

/** Waits until the agent has ended. Fails if it did not tell the model `text` as the result of a call. */
async function tellsModel(stage, printed, text) {
  const shown = (await printed).slice(-1500);
  const { results } = stage.model;
  assert.ok(
    results.some(result => result.includes(text)),
    `the model was told ${JSON.stringify(results)}:\n${shown}`,
  );
}

/** Fails the cell if the agent ends before the editor has the question. */
const beforeItEnds = (question, printed) =>
  Promise.race([question, printed.then(text => assert.fail(`the agent asked nothing:\n${text.slice(-1500)}`))]);

const fixture = name => new URL(`../fixtures/${name}`, import.meta.url).pathname;

/** A server that offers what `script` says (tests/fixtures/scripted.py). */
function scripted(stage, name, script, more = {}) {
  const file = stage.path(`${name}.json`);
  fs.writeFileSync(file, JSON.stringify(script));
  return { command: "python3", args: [fixture("scripted.py"), file], ...more };
}

const tool = name => ({
  name,
  description: `The tool ${name}.`,
  inputSchema: { type: "object", properties: { text: {} } },
});

/** The agents whose own questions cannot be handed over. */
const NO_HOOKS = Object.fromEntries(
  ["qwen", "opencode", "continue", "cline"].map(agent => [
    agent,
    { says: "has no such hooks", because: /setup \w+ --hooks failed/ },
  ]),
);

/** The own tools of an agent as its hooks name them: its shell, and the one that writes a file. */
function ownTools(stage) {
  const { hooks } = stage.agent;
  const of = call => call && (hooks.reported ?? call[0]);
  return { shell: of(hooks.shell("")), write: of(hooks.write?.("", "")) };
}

/** Answers the questions about the own tools of the agent one after the other. `answer` gets each, and its number. */
async function answerOwnTools(editor, count, printed, answer) {
  const answered = new Set();
  for (let number = 0; number < count; number++) {
    const question = await beforeItEnds(
      editor.question(one => one.kind === "tool" && !answered.has(one.id)),
      printed,
    );
    answered.add(question.id);
    await answer(question, number);
  }
}

/** The answers to the hooks of the agent, in the call log. */
async function hookDecisions(stage) {
  const { calls } = JSON.parse(await stage.shell("calls", "--agent", stage.agent.hooks.name, "--json"));
  return calls.filter(call => call.kind === "hook").map(call => call.decision);
}

/** A rule that asks about every own tool that changes something. */
async function askAboutOwnTools(stage) {
  // Fails here for an agent without hooks.
  await stage.hooks({});
  const { shell, write } = ownTools(stage);
  const rules = { [shell]: "require-approval", ...(write ? { [write]: "require-approval" } : {}) };
  await stage.hooks(rules);
}

/** The questions about a shell command and a new file, each as [the call, what the question must show]. */
function ownSteps(stage) {
  const { hooks } = stage.agent;
  const file = stage.path("project/written.txt");
  const steps = [[hooks.shell("touch touched.txt"), one => one.arguments.command === "touch touched.txt"]];
  if (hooks.write) {
    steps.push([hooks.write(file, "milk\n"), one => one.change?.diff.includes("+milk")]);
  }
  return steps;
}

const exists = (stage, name) => fs.existsSync(stage.path(`project/${name}`));

export const CASES = {
  setup: {
    shows:
      "after `mcp-sidecar setup`, the agent's own command lists mcp-sidecar (or a run uses it), and `--undo` removes it",
    async run(stage) {
      // Undoing leaves the files as they were, apart from backups.
      await stage.shell("setup", stage.name, "--user", "--undo");
      for (const [file, text] of stage.before) {
        assert.equal(fs.readFileSync(file, "utf8"), text, `${file} is not as it was before`);
      }
      await stage.shell("setup", stage.name, "--user");
      if (!stage.agent.list) {
        await tellsModel(stage, stage.prompt([["echo", { text: "set up" }]]), "set up");
        return;
      }
      assert.match(await stage.list(), stage.agent.listed);
      await stage.shell("setup", stage.name, "--user", "--undo");
      assert.doesNotMatch(await stage.list(), stage.agent.listed);
    },
  },
  "own servers once": {
    shows: "the servers in a project's `.mcp.json` reach the model only through mcp-sidecar",
    async run(stage) {
      const own = scripted(stage, "own", { tools: [tool("past_us")] });
      fs.writeFileSync(stage.path("project/.mcp.json"), JSON.stringify({ mcpServers: { own } }));
      await stage.shell("setup", stage.name, "--user", "--yes");
      await tellsModel(stage, stage.prompt([["echo", { text: "once" }]]), "once");
      assert.deepEqual(
        [...stage.model.tools].filter(name => name.includes("past_us")),
        [],
      );
    },
  },
  tools: {
    shows: "the model sees the tools, calls one and reads its result",
    async run(stage) {
      await tellsModel(stage, stage.prompt([["echo", { text: "hello there" }]]), "hello there");
    },
  },
  approval: {
    shows: "the question about a call is in the open editor, with the agent's name and arguments, until the agent ends",
    async run(stage) {
      const editor = await stage.editor();
      const { printed } = await askForNote(stage, editor);
      stage.killAgents();
      await printed;
      await editor.noQuestions();
    },
  },
  allow: {
    shows: "after you allow it there, the call runs",
    async run(stage) {
      const editor = await stage.editor();
      const { printed, question } = await askForNote(stage, editor);
      await editor.answer(question, "allow-once");
      await tellsModel(stage, printed, "saved as note 1");
    },
  },
  deny: {
    shows: "after you deny it there with a note, the model reads the note",
    async run(stage) {
      const editor = await stage.editor();
      const { printed, question } = await askForNote(stage, editor);
      await editor.answer(question, "deny", "we have milk");
      await tellsModel(stage, printed, "we have milk");
    },
  },
  "no editor": {
    shows: "without an editor, the call is refused, and the model is told why but not where the rules are",
    async run(stage) {
      await tellsModel(stage, stage.prompt([NOTE]), "there was no one to ask");
      const results = stage.model.results.join();
      assert.doesNotMatch(results, /saved as note/);
      assert.doesNotMatch(results, /mcp\.json|config\.toml/, "the model was told where the user's rules are");
    },
  },
  "75 s of thinking": {
    shows: "the call is allowed after 75 seconds, and runs",
    limit: 180_000,
    // Continue calls with the timeout of its SDK, which is 60 s, and does not let progress extend it.
    limits: { continue: { says: "gives up after 60 s, has no setting", because: /Request timed out/ } },
    async run(stage) {
      const editor = await stage.editor();
      const { printed, question } = await askForNote(stage, editor);
      // The question is withdrawn if the agent gives up.
      const withdrawn = editor.noQuestions().then(() => true);
      if (!(await Promise.race([withdrawn, new Promise(resolve => setTimeout(resolve, 75_000))]))) {
        await editor.answer(question, "allow-once");
      }
      await tellsModel(stage, printed, "saved as note 1");
    },
  },
  "odd definitions": {
    shows: "a server with definitions that the agent's SDK rejects does not affect the other tools of the agent",
    async run(stage) {
      stage.servers({ odd: { command: "python3", args: [fixture("scripted.py"), fixture("nonconforming-lists.json")] } });
      await tellsModel(stage, stage.prompt([["echo", { text: "hello there" }]]), "hello there");
    },
  },
  "300 tools": {
    shows: "the model sees all 300 tools, or the agent's own search finds them, and calls one",
    async run(stage) {
      const tools = Array.from({ length: 300 }, (_, number) => tool(`tool_${String(number).padStart(3, "0")}`));
      stage.servers({ many: scripted(stage, "many", { tools }, { tools: { "*": "allow-session" } }) });
      await tellsModel(stage, stage.prompt([["tool_237", { text: "one of many" }]]), "one of many");
      const seen = [...stage.model.tools].filter(name => /tool_\d{3}$/.test(name)).length;
      assert.ok(seen === 300 || stage.model.tools.has(SEARCH), `the model sees only ${seen} tools`);
    },
  },
  "engine killed": {
    shows: "the engine is killed between two calls of a session, and the second one works",
    async run(stage) {
      let killed;
      stage.model.beforeStep = async step => {
        if (step === 1) {
          killed = await stage.killEngine();
        }
      };
      const steps = ["before it", "after it"].map(text => ["echo", { text }]);
      await tellsModel(stage, stage.prompt(steps), "after it");
      assert.ok(killed, "the engine was not killed");
    },
  },
  "two worktrees": {
    shows: "in a git worktree, the agent gets the servers of its own checkout and asks in the editor of the main one",
    async run(stage) {
      // The server of the project says which checkout it is for.
      const here = scripted(stage, "here", { tools: [tool("where")] }, { env: { FOLDER: "${workspaceFolder}" } });
      const [main, sibling] = ["project", "sibling"].map(name => path.join(fs.realpathSync(stage.place), name));
      fs.writeFileSync(path.join(main, "mcp.json"), JSON.stringify({ servers: { here } }));
      const git = (...args) => execFileSync("git", ["-C", main, ...args], { env: stage.env });
      git("init", "--quiet");
      git("add", "mcp.json");
      git("-c", "user.name=a", "-c", "user.email=a@example.test", "commit", "--quiet", "-m", "a server");
      git("worktree", "add", "--quiet", sibling);
      const editor = await stage.editor(main);
      await editor.answer(await editor.question(one => one.kind === "trust"), "allow-project");
      const printed = stage.prompt([["where", { variable: "FOLDER" }]], sibling);
      const question = await beforeItEnds(
        editor.question(one => one.kind === "tool"),
        printed,
      );
      assert.equal(question.tool, "where");
      assert.equal(question.folder, sibling);
      assert.match(question.requester.name, stage.agent.reports);
      assert.equal(stage.engines().length, 1, "both checkouts share an engine");
      await editor.answer(question, "allow-once");
      await tellsModel(stage, printed, sibling);
      // The main checkout has its own server.
      const called = editor.command("mcp.tool.call", { tool: "mcp__here__where", arguments: { variable: "FOLDER" } });
      await editor.answer(await editor.question(one => one.kind === "tool"), "allow-once");
      assert.ok(JSON.stringify(await called).includes(main), "the server of the main checkout is not its own");
    },
  },
  "own tools allow": {
    shows:
      "with `setup --hooks`, the agent's own shell command and file change ask in the editor, with the command and the diff, and run once allowed",
    limits: NO_HOOKS,
    async run(stage) {
      await askAboutOwnTools(stage);
      const editor = await stage.editor();
      const steps = ownSteps(stage);
      const printed = stage.prompt(steps.map(([call]) => call));
      await answerOwnTools(editor, steps.length, printed, async (question, number) => {
        assert.equal(question.server, stage.agent.hooks.name);
        assert.ok(question.agentTool, "the question names the tool");
        assert.equal(question.requester.name, stage.agent.hooks.name);
        assert.match(question.detail, /The agent works in /);
        assert.ok(steps[number][1](question), JSON.stringify(question));
        await editor.answer(question, "allow-once");
      });
      const shown = await printed;
      assert.ok(exists(stage, "touched.txt"), `the command did not run:\n${shown.slice(-1500)}`);
      assert.equal(exists(stage, "written.txt"), steps.length > 1, `the file was not written:\n${shown.slice(-1500)}`);
    },
  },
  "own tools deny": {
    shows: "after you deny it there with a note, neither runs, and the model reads the note",
    limits: NO_HOOKS,
    async run(stage) {
      await askAboutOwnTools(stage);
      const editor = await stage.editor();
      const steps = ownSteps(stage);
      const printed = stage.prompt(steps.map(([call]) => call));
      await answerOwnTools(editor, steps.length, printed, (question, number) =>
        editor.answer(question, "deny", `not today ${number}`),
      );
      await tellsModel(stage, printed, "not today 0");
      assert.ok(!exists(stage, "touched.txt") && !exists(stage, "written.txt"), "it ran although it was denied");
    },
  },
  "own tools rule": {
    shows:
      "a rule allows one exact command and denies another one without a question, also inside a longer command; every answer is in the call log, and `--undo` removes the hooks",
    limits: NO_HOOKS,
    async run(stage) {
      await stage.hooks({});
      const { shell } = ownTools(stage);
      await stage.hooks({
        [shell]: [
          { when: { command: { matches: "rm .*" } }, level: "deny" },
          { when: { command: { in: ["touch touched.txt"] } }, level: "allow-session" },
          "deny",
        ],
      });
      fs.writeFileSync(stage.path("project/kept.txt"), "");
      const commands = ["touch touched.txt", "true && rm kept.txt", "touch touched.txt; touch more.txt"];
      const shown = await stage.prompt(commands.map(command => stage.agent.hooks.shell(command)));
      assert.ok(exists(stage, "touched.txt"), `the command did not run:\n${shown.slice(-1500)}`);
      assert.ok(exists(stage, "kept.txt") && !exists(stage, "more.txt"), "a denied command ran");
      // Copilot CLI asks about the allowed command twice: before the tool, and for the permission.
      assert.deepEqual([...new Set(await hookDecisions(stage))].sort(), ["allow-session", "deny"]);
      await stage.shell("setup", stage.name, "--hooks", "--undo");
      assert.match(await stage.shell("setup", stage.name, "--hooks", "--undo"), /nothing to undo/);
    },
  },
  "own tools prompt": {
    shows: "without a rule, what the agent would ask its user is asked in the editor",
    limits: {
      ...NO_HOOKS,
      claude: { says: "only in its interactive interface", because: /the agent asked nothing/ },
      codex: { says: "only in its interactive interface", because: /the agent asked nothing/ },
      gemini: { says: "asks only about rules", because: /the agent asked nothing/ },
    },
    async run(stage) {
      await stage.hooks({});
      const editor = await stage.editor();
      const printed = stage.prompt(ownSteps(stage).map(([call]) => call));
      await answerOwnTools(editor, 2, printed, question => editor.answer(question, "allow-once"));
      const shown = await printed;
      assert.ok(exists(stage, "touched.txt") && exists(stage, "written.txt"), `it did not run:\n${shown.slice(-1500)}`);
    },
  },
  "own tools no editor": {
    shows: "without an editor, what requires approval is left to the agent, which does not run it without its user",
    limits: NO_HOOKS,
    async run(stage) {
      await askAboutOwnTools(stage);
      const printed = stage.prompt(ownSteps(stage).map(([call]) => call));
      if (stage.agent.hooks.waits) {
        while (!(await hookDecisions(stage)).includes("ask")) {}
        stage.killAgents();
      }
      await printed;
      assert.ok(!exists(stage, "touched.txt") && !exists(stage, "written.txt"), "it ran without a permission");
      assert.ok((await hookDecisions(stage)).includes("ask"), "the question is not in the call log");
    },
  },
};
