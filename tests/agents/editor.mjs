// An editor with the approvals of the sidecar: an LSP client of `mcp-sidecar lsp` that keeps the open questions.
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";

export class Editor {
  /** The open questions, oldest first. */
  approvals = [];
  #child;
  #waiting = new Map();
  #watchers = new Set();
  #next = 1;
  #rest = Buffer.alloc(0);

  /** Opens `folder`, and returns when the sidecar is ready. */
  static async open(program, folder, env) {
    const editor = new Editor();
    editor.#child = spawn(program, ["lsp"], { cwd: folder, env, stdio: ["pipe", "pipe", "ignore"] });
    editor.#child.stdout.on("data", data => editor.#read(data));
    const mcpSidecar = { version: "1", approvals: true, elicitation: true };
    await editor.request("initialize", {
      processId: process.pid,
      clientInfo: { name: "Test Editor" },
      workspaceFolders: [{ uri: pathToFileURL(folder).href, name: "project" }],
      capabilities: { experimental: { mcpSidecar } },
    });
    editor.notify("initialized", {});
    return editor;
  }

  request(method, params) {
    const id = this.#next++;
    this.#send({ id, method, params });
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  notify(method, params) {
    this.#send({ method, params });
  }

  command(command, params) {
    return this.request("workspace/executeCommand", { command, arguments: [params] });
  }

  /** Waits for the next question that `wanted` accepts. */
  question(wanted) {
    return this.#when(questions => questions.find(wanted));
  }

  /** Waits until no question is open. */
  noQuestions() {
    return this.#when(questions => questions.length === 0);
  }

  /** Waits until `find` finds something in the open questions. */
  #when(find) {
    return new Promise(resolve => {
      const look = () => {
        const found = find(this.approvals);
        if (found) {
          this.#watchers.delete(look);
          resolve(found);
        }
      };
      this.#watchers.add(look);
      look();
    });
  }

  answer(question, decision, note) {
    return this.command("mcp.approval.resolve", { id: question.id, decision, note });
  }

  async close() {
    if (this.#child.exitCode === null) {
      const gone = new Promise(resolve => this.#child.once("exit", resolve));
      await Promise.race([this.request("shutdown").catch(() => {}), gone]);
      this.notify("exit");
      this.#child.stdin.end();
      await gone;
    }
  }

  #send(message) {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.#child.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  #read(data) {
    this.#rest = Buffer.concat([this.#rest, data]);
    for (;;) {
      const end = this.#rest.indexOf("\r\n\r\n");
      const length = end >= 0 && Number(/content-length: *(\d+)/i.exec(this.#rest.subarray(0, end).toString())[1]);
      if (end < 0 || this.#rest.length < end + 4 + length) {
        return;
      }
      const message = JSON.parse(this.#rest.subarray(end + 4, end + 4 + length).toString());
      this.#rest = this.#rest.subarray(end + 4 + length);
      this.#receive(message);
    }
  }

  #receive({ id, method, params, result, error }) {
    if (method === "mcp/approvalsChanged") {
      this.approvals = params.approvals;
      for (const look of [...this.#watchers]) {
        look();
      }
    } else if (method && id !== undefined) {
      this.#send({ id, result: null });
    } else if (!method) {
      const { resolve, reject } = this.#waiting.get(id) ?? {};
      this.#waiting.delete(id);
      error ? reject?.(new Error(error.message)) : resolve?.(result);
    }
  }
}
