/**
 * Which page has the keyboard focus. VS Code gives a page the focus back when an input closes, and so late that the page
 * would take the keys from an input that opens at once. So the next input waits for the page.
 */

import { EventEmitter, TabInputWebview, window } from "vscode";

/** A page that is not asked to take the focus is not waited for longer. */
const WAIT_MS = 250;

const focused = new Set<object>();
const changes = new EventEmitter<void>();

/** Called when a page gets or loses the focus. */
export function setFocus(page: object, has: boolean): void {
  if (has) {
    focused.add(page);
  } else {
    focused.delete(page);
  }
  changes.fire();
}

/** Resolves once an input can open and keep the focus. */
export async function pageSettled(): Promise<void> {
  const isPage = window.tabGroups.activeTabGroup.activeTab?.input instanceof TabInputWebview;
  if (!isPage || focused.size > 0) {
    return;
  }
  await new Promise<void>(resolve => {
    const timer = setTimeout(resolve, WAIT_MS);
    const listening = changes.event(() => {
      clearTimeout(timer);
      listening.dispose();
      resolve();
    });
  });
}
