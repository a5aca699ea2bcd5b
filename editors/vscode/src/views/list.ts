/** A view that is a plain list: loaded when somebody looks, drawn again when it is told to. */

import { type Disposable, EventEmitter, type TreeDataProvider, type TreeItem, type TreeView, window } from "vscode";
import { type Row, treeItem } from "./row";

export class ListView<T extends object> implements TreeDataProvider<T>, Disposable {
  private readonly changed = new EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: TreeView<T>;
  /** What was drawn last. */
  items: readonly T[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(
    id: string,
    private readonly load: () => Promise<readonly T[]> | readonly T[],
    private readonly row: (item: T) => Row,
    options: { canSelectMany?: boolean } = {},
  ) {
    this.view = window.createTreeView(id, { treeDataProvider: this, ...options });
  }

  getTreeItem(item: T): TreeItem {
    return treeItem(this.row(item), item);
  }

  async getChildren(item?: T): Promise<T[]> {
    if (item) {
      return [];
    }
    this.items = await this.load();
    return [...this.items];
  }

  /** Draws the list again, once for many changes in a row. */
  refresh(afterMs = 0): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.changed.fire(undefined);
    }, afterMs);
  }

  /** What a command is about: what it was called on, else what is selected. */
  chosen(item: T | undefined, others: readonly T[] | undefined): readonly T[] {
    if (others && others.length > 0) {
      return others;
    }
    return item ? [item] : this.view.selection;
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.view.dispose();
    this.changed.dispose();
  }
}
