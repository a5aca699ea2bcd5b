// Shared by the window tests: steps that build on each other, and presses on a page.
import { test } from "node:test";

/**
 * Returns `step(name, run)`: a test that is skipped after an earlier step failed. With `VSCODE_TEST_PICTURES`, a failing
 * step saves a picture of the window there. `shownWindow()` returns the window.
 */
export function steps(shownWindow) {
  let failed = false;
  return (name, run) =>
    test(name, async t => {
      if (failed) {
        t.skip("an earlier step failed");
        return;
      }
      try {
        await run();
      } catch (error) {
        failed = true;
        if (process.env.VSCODE_TEST_PICTURES) {
          const file = `${process.env.VSCODE_TEST_PICTURES}/${name.replace(/\W+/g, "-")}.png`;
          await shownWindow()
            .shot(file)
            .catch(() => {});
        }
        throw error;
      }
    });
}

/** Presses a button of a page once the page accepts presses: it ignores them for a moment after its content changed. */
export async function press(page, name) {
  await page.locator("body.live").waitFor();
  await page.getByRole("button", { name, exact: true }).click();
}
