/**
 * A view that is a plain list: loaded when it is visible, drawn again by `refresh`.
 *
 * Commands never act on the selection of a tree. Arrow keys move only the focus, which VS Code does not report, so a key
 * that acts on the selection acts on another row than the one under the cursor. Rows are acted on by Enter, a click, an
 * inline button or the context menu (Shift+F10): each of them passes the row itself. For the same reason a list has no
 * multiple selection: an inline button of one row would act on all selected rows.
 */

import { type Disposable, EventEmitter, type TreeDataProvider, type TreeItem, type TreeView, window } from "vscode";
import { type Row, treeItem } from "./row";

export class ListView<T extends object> implements TreeDataProvider<T>, Disposable {
  private readonly changed = new EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: TreeView<T>;
  /** The items that were drawn last. */
  items: readonly T[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(
    id: string,
    private readonly load: () => Promise<readonly T[]> | readonly T[],
    private readonly row: (item: T) => Row,
  ) {
    this.view = window.createTreeView(id, { treeDataProvider: this });
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

  /** Redraws the list, once for several changes in a row. */
  refresh(afterMs = 0): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.changed.fire(undefined);
    }, afterMs);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.view.dispose();
    this.changed.dispose();
  }
}
