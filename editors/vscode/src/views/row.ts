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
  /** What a screen reader says, if it is more than label and description: the icon has no words. */
  spoken?: string;
  /** For the `when` clauses of menus: a word, then flags, joined by dots. */
  contextValue?: string;
  collapsible?: "Expanded" | "Collapsed";
  /** The command that a click or Enter runs, with the node of the row. It shows the node and starts nothing. */
  command?: string;
}

export function treeItem(row: Row, node: unknown): TreeItem {
  const { label, description, icon, color, tooltip, command } = row;
  const spoken = row.spoken ?? [label, description].filter(Boolean).join(", ");
  return Object.assign(new TreeItem(label, TreeItemCollapsibleState[row.collapsible ?? "None"]), {
    id: row.id,
    description,
    accessibilityInformation: { label: spoken },
    tooltip: tooltip && new MarkdownString(tooltip, true),
    iconPath: icon && new ThemeIcon(icon, color ? new ThemeColor(color) : undefined),
    contextValue: row.contextValue,
    command: command && { command, title: label, arguments: [node] },
  });
}

/** Compares items by name. */
export function byName<T>(name: (item: T) => string): (one: T, other: T) => number {
  return (one, other) => name(one).localeCompare(name(other));
}
