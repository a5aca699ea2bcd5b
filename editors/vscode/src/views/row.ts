/** A row of a tree as plain data, and how VS Code wants it. What rows say is worked out elsewhere, without VS Code. */

import { MarkdownString, ThemeColor, ThemeIcon, TreeItem, TreeItemCollapsibleState } from "vscode";

export interface Row {
  id: string;
  label: string;
  description?: string;
  /** Markdown; foreign text in it is escaped. */
  tooltip?: string;
  icon?: string;
  /** A theme colour for the icon. */
  color?: string;
  /** What menus ask for: a word, then flags, all joined by dots. */
  context?: string;
  fold?: "open" | "closed";
  /** What a click runs. It gets the node of the row. */
  click?: string;
}

export function treeItem(row: Row, node: unknown): TreeItem {
  const state = {
    open: TreeItemCollapsibleState.Expanded,
    closed: TreeItemCollapsibleState.Collapsed,
    none: TreeItemCollapsibleState.None,
  }[row.fold ?? "none"];
  const item = new TreeItem(row.label, state);
  item.id = row.id;
  if (row.description) {
    item.description = row.description;
  }
  if (row.tooltip) {
    item.tooltip = new MarkdownString(row.tooltip, true);
  }
  if (row.icon) {
    item.iconPath = new ThemeIcon(row.icon, row.color ? new ThemeColor(row.color) : undefined);
  }
  if (row.context) {
    item.contextValue = row.context;
  }
  if (row.click) {
    item.command = { command: row.click, title: row.label, arguments: [node] };
  }
  return item;
}

/** Names without order are hard to find again. */
export function byName<T>(name: (item: T) => string): (one: T, other: T) => number {
  return (one, other) => name(one).localeCompare(name(other));
}
