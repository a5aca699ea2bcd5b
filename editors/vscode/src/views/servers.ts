/** The Servers view: each server with its tools, resources and prompts, fetched when they are expanded. */

import {
  Disposable,
  EventEmitter,
  MarkdownString,
  type TreeDataProvider,
  type TreeItem,
  type TreeView,
  window,
  workspace,
} from "vscode";
import type { PromptInfo, ResourceInfo, ServerStatus, ToolInfo } from "../protocol";
import type { Sidecar } from "../sidecar";
import { byName, treeItem } from "./row";
import { groupRow, noteRow, promptRow, resourceRow, serverRow, toolRow, toolTooltip } from "./serverRows";

type Group = "tools" | "resources" | "prompts";

export type ServerNode =
  | { kind: "server"; server: string; status: ServerStatus }
  | { kind: "note"; server: string; place: number; level: "error" | "warning"; text: string }
  | { kind: "group"; server: string; group: Group; count: number; cost: number }
  | { kind: "tool"; server: string; tool: ToolInfo }
  | { kind: "resource"; server: string; resource: ResourceInfo }
  | { kind: "prompt"; server: string; prompt: PromptInfo };

export class ServersView implements TreeDataProvider<ServerNode>, Disposable {
  private readonly changed = new EventEmitter<ServerNode | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  /** Nodes by name: VS Code needs the same object to redraw a row. */
  private readonly nodes = new Map<string, ServerNode & { kind: "server" }>();
  private readonly view: TreeView<ServerNode>;
  private readonly disposables: Disposable[];

  constructor(private readonly sidecar: Sidecar) {
    this.view = window.createTreeView("mcpSidecar.servers", { treeDataProvider: this, showCollapseAll: true });
    this.disposables = [
      this.view,
      this.changed,
      sidecar.state.onServers(name => this.redraw(name)),
      workspace.onDidGrantWorkspaceTrust(() => this.explain()),
    ];
    this.explain();
  }

  getTreeItem(node: ServerNode): TreeItem {
    switch (node.kind) {
      case "server":
        return treeItem(serverRow(node.status), node);
      case "note":
        return treeItem(noteRow(node.server, node.place, node.level, node.text), node);
      case "group":
        return treeItem(groupRow(node.server, node.group, node.count, node.cost), node);
      case "tool":
        return treeItem(toolRow(node.tool), node);
      case "resource":
        return treeItem(resourceRow(node.resource), node);
      case "prompt":
        return treeItem(promptRow(node.prompt), node);
    }
  }

  /** Called when a tooltip is about to be shown. */
  async resolveTreeItem(item: TreeItem, node: ServerNode): Promise<TreeItem> {
    if (node.kind === "tool") {
      const { fields } = await this.sidecar.command("mcp.tool.form", { tool: node.tool.name });
      item.tooltip = new MarkdownString(toolTooltip(node.tool, fields), true);
    }
    return item;
  }

  async getChildren(node?: ServerNode): Promise<ServerNode[]> {
    if (!node) {
      return this.sidecar.state.servers.map(status => this.nodeOf(status));
    }
    if (node.kind === "server") {
      return below(node.status);
    }
    if (node.kind !== "group") {
      return [];
    }
    const { server } = node;
    if (node.group === "tools") {
      const { tools } = await this.sidecar.command("mcp.tools", { server, all: true });
      return tools.sort(byName(tool => tool.tool)).map(tool => ({ kind: "tool", server, tool }));
    }
    if (node.group === "resources") {
      const { resources, templates } = await this.sidecar.command("mcp.resources", { server });
      return [...resources, ...templates].map(resource => ({ kind: "resource", server, resource }));
    }
    const { prompts } = await this.sidecar.command("mcp.prompts", { server });
    return prompts.map(prompt => ({ kind: "prompt", server, prompt }));
  }

  getParent(): undefined {
    return undefined;
  }

  /** Shows the view, with the focus on one server. */
  async reveal(server: string): Promise<void> {
    const status = this.sidecar.state.server(server);
    if (status) {
      await this.view.reveal(this.nodeOf(status), { focus: true, expand: true });
    }
  }

  dispose(): void {
    Disposable.from(...this.disposables).dispose();
  }

  private explain(): void {
    const restricted = "Restricted Mode: servers of this workspace do not start until you trust the workspace.";
    this.view.message = workspace.isTrusted ? "" : restricted;
  }

  private nodeOf(status: ServerStatus): ServerNode & { kind: "server" } {
    const known = this.nodes.get(status.name);
    if (known) {
      known.status = status;
      return known;
    }
    const node = { kind: "server" as const, server: status.name, status };
    this.nodes.set(status.name, node);
    return node;
  }

  private redraw(name: string | undefined): void {
    const status = name === undefined ? undefined : this.sidecar.state.server(name);
    const drawn = name !== undefined && this.nodes.has(name);
    this.changed.fire(status && drawn ? this.nodeOf(status) : undefined);
  }
}

function below(status: ServerStatus): ServerNode[] {
  const { name: server } = status;
  const notes: { level: "error" | "warning"; text: string }[] = [
    ...(status.error ? [{ level: "error" as const, text: status.error }] : []),
    ...status.warnings.map(text => ({ level: "warning" as const, text })),
  ];
  const groups: [Group, number][] = [
    ["tools", status.toolCount],
    ["resources", status.resourceCount],
    ["prompts", status.promptCount],
  ];
  // Listed also when all tools are hidden: this is where they can be shown again.
  const has = ([group, count]: [Group, number]) =>
    count > 0 || (group === "tools" && status.capabilities.includes("tools"));
  return [
    ...notes.map((note, place) => ({ kind: "note" as const, server, place, ...note })),
    ...groups.filter(has).map(([group, count]) => {
      const cost = group === "tools" ? status.tokens : 0;
      return { kind: "group" as const, server, group, count, cost };
    }),
  ];
}
