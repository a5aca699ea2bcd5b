/** A row of a tree as plain data, and its conversion to a `TreeItem`. The text of rows is computed elsewhere, without VS Code. */

import { MarkdownString, ThemeColor, ThemeIcon, TreeItem, TreeItemCollapsibleState } from "vscode";

export interface Row {
  id: string;
  label: string;
  description?: string;
  /** Markdown. Text of others must be escaped. */
  tooltip?: string;
  icon?: string;
  /** A theme colour for the icon. */
  color?: string;
  /** For the `when` clauses of menus: a word, then flags, joined by dots. */
  contextValue?: string;
  collapsible?: "expanded" | "collapsed";
  /** The command that a click or Enter runs, with the node of the row. It shows the node and starts nothing. */
  command?: string;
}

export function treeItem(row: Row, node: unknown): TreeItem {
  const state = {
    expanded: TreeItemCollapsibleState.Expanded,
    collapsed: TreeItemCollapsibleState.Collapsed,
    none: TreeItemCollapsibleState.None,
  }[row.collapsible ?? "none"];
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
  if (row.contextValue) {
    item.contextValue = row.contextValue;
  }
  if (row.command) {
    item.command = { command: row.command, title: row.label, arguments: [node] };
  }
  return item;
}

/** Compares items by name. */
export function byName<T>(name: (item: T) => string): (one: T, other: T) => number {
  return (one, other) => name(one).localeCompare(name(other));
}
