// Drives a real VS Code (installed by ./get-code-server) for tests and pictures.
//
//   import { openVSCode, runExtensionTests } from '../../scripts/vscode-drive.mjs';
//   const vs = await openVSCode({ workspace, extension: 'editors/vscode', files: ['mcp.json'] });
//   await vs.click(vs.lens('Start'), vs.lens('Stop')); await vs.notification('started'); await vs.shot('started.png');
//   await vs.close();
//
// `extension` loads an unpacked folder in place; `vsix` installs a packaged one as a
// user would. Every run has its own empty profile, extensions folder and browser
// profile, removed by close() unless `keep` is set.
import { createRequire } from 'node:module';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findChromium, serverHome, startServer, WAIT } from './vscode-server.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
/** How long the first try of something may take; each further one may take twice as long, up to the last of these. */
const TRY = 5_000;
const LONGEST_TRY = 40_000;

async function openPage(options, payload) {
  const { workspace, files = [], viewport = { width: 1400, height: 900 }, headless = true } = options;
  if (!workspace) throw new Error('openVSCode needs a workspace folder');
  const root = serverHome(options.home);
  const { chromium } = createRequire(path.join(root, 'tools/package.json'))('playwright-core');
  const executablePath = findChromium();
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'vscode-drive-'));
  let server, context;
  const tidy = () => {
    if (options.keep) return;
    try { fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }); } catch { /* leaves a temporary folder */ }
  };
  process.once('exit', tidy);
  const close = async () => {
    await context?.close().catch(() => {});
    await server?.stop();
    tidy();
    process.removeListener('exit', tidy);
  };
  try {
    server = await startServer({ ...options, profile });
    context = await chromium.launchPersistentContext(path.join(profile, 'browser'), {
      executablePath, headless, viewport,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
        '--disable-component-update', '--disable-sync'],
    });
    context.setDefaultTimeout(WAIT);
    const page = context.pages()[0] ?? await context.newPage();
    const remote = (p) => `vscode-remote://${server.authority}${encodeURI(path.resolve(p))}`;
    const pairs = [['skipWelcome', 'true'], ...payload(remote)];
    for (const file of files) pairs.push(['openFile', remote(path.resolve(workspace, file))]);
    const kind = workspace.endsWith('.code-workspace') ? 'workspace' : 'folder';
    const url = `${server.url}&${kind}=${encodeURIComponent(path.resolve(workspace))}&payload=${encodeURIComponent(JSON.stringify(pairs))}`;
    return { server, page, profile, close, url };
  } catch (e) {
    await close();
    throw e;
  }
}

/** Opens a workspace in a headless page and waits until the workbench and its extension host are up. */
export async function openVSCode(options) {
  const opened = await openPage(options, () => []);
  const { page, server } = opened;
  const vs = new Workbench(opened);
  page.on('console', (m) => vs.console.push(`${m.type()}: ${m.text()}`));
  try {
    await page.goto(opened.url, { waitUntil: 'commit' });
    await page.locator('.monaco-workbench').waitFor();
    await page.locator('.statusbar').waitFor();
  } catch (e) {
    const log = server.log;
    await vs.close();
    throw new Error(`${e.message}\nserver log:\n${log.slice(-3000)}`);
  }
  return vs;
}

export class Workbench {
  constructor({ page, server, profile, close }) {
    Object.assign(this, { page, server, profile, close, console: [] });
  }

  /**
   * Does something until its effect is seen, and returns what `seen` returns. A window that is busy loses keys and clicks:
   * what is under the mouse is drawn again between press and release, or something else takes the focus. So `act` must be
   * harmless when it is repeated. Both get the limit of this try, in milliseconds.
   */
  async until(act, seen) {
    for (let limit = TRY, end = Date.now() + WAIT; ; limit = Math.min(2 * limit, LONGEST_TRY)) {
      const failed = await act(limit).then(() => undefined, (e) => e); // the effect decides: it may have worked after all
      try {
        return await seen(limit);
      } catch (e) {
        if (Date.now() > end || this.page.isClosed()) throw failed ?? e;
        await this.page.mouse.move(0, 0); // the tooltip of what was clicked before may cover what is to be clicked
      }
    }
  }

  /** Clicks something until `effect` is visible. */
  async click(target, effect, options = {}) {
    await this.until((timeout) => target.click({ ...options, timeout }), (timeout) => effect.waitFor({ timeout }));
  }

  /** Presses a key until `effect` is visible. */
  async key(name, effect) {
    await this.until(() => this.page.keyboard.press(name), (timeout) => effect.waitFor({ timeout }));
  }

  quickInput() {
    return this.page.locator('.quick-input-widget');
  }

  /** What the quick input shows; empty if it is hidden. */
  quickInputText() {
    return this.page.evaluate(quickInputText);
  }

  /** Waits until the quick input does not show this any more. */
  quickInputChange(before, timeout) {
    return this.page.waitForFunction(`(${quickInputText})() !== ${JSON.stringify(before)}`, undefined, { timeout });
  }

  /** Opens the box of quick picks with a key, types into it, and clicks a row. A command may be registered late. */
  async quickPick(key, text, row) {
    const box = this.quickInput();
    let clicked;
    await this.until(async (timeout) => {
      if (clicked !== undefined) await this.page.keyboard.press('Escape'); // it is tried again
      clicked = false;
      await this.page.keyboard.press(key);
      await box.locator('input.input').fill(text, { timeout });
      await box.locator('.monaco-list-row', row).first().click({ timeout });
      clicked = true;
    }, async (timeout) => {
      // A view that takes the focus closes the box, too.
      if (!clicked) throw new Error(`nothing to pick for "${text}"`);
      await this.page.waitForFunction((text) => { // the box is closed, or belongs to the command
        const box = document.querySelector('.quick-input-widget');
        return !box?.checkVisibility() || box.querySelector('input.input').value !== text;
      }, text, { timeout });
    });
  }

  /** Runs a palette command by its full label, such as "MCP: List Servers". */
  async command(label) {
    await this.quickPick('F1', `>${label}`, { has: this.page.getByText(label, { exact: true }) });
  }

  /** Chooses a row of an open quick pick. */
  async pick(text) {
    const row = this.page.locator('.quick-input-list .monaco-list-row', { hasText: text }).first();
    await row.waitFor();
    const before = await this.quickInputText();
    await this.until((timeout) => row.click({ timeout }), (timeout) => this.quickInputChange(before, timeout));
  }

  /** Types into an open input box and accepts it. */
  async type(text) {
    const input = this.quickInput().locator('input.input');
    await input.fill(text);
    const before = await this.quickInputText();
    // The box stays while its text is checked, which must not look like a lost key.
    await this.until(() => input.press('Enter'), (timeout) => this.quickInputChange(before, 2 * timeout));
  }

  async openFile(name) {
    const hasText = path.basename(name);
    await this.quickPick('Control+P', name, { hasText });
    await this.page.locator('.editor-group-container.active .tab.active', { hasText }).waitFor();
    await this.editorFocused();
  }

  /** Waits until the active editor gets the keys. */
  async editorFocused() {
    await this.page.locator('.editor-group-container.active .monaco-editor.focused').first().waitFor();
  }

  /** Replaces the text of the active editor. Not key by key: Enter accepts a suggestion that a slow window shows just then. */
  async replaceText(text) {
    await this.editorFocused();
    await this.until(async () => {
      await this.page.keyboard.press('Control+A');
      await this.page.keyboard.insertText(text);
    }, async (limit) => {
      for (const end = Date.now() + limit; (await this.editorText()).trim() !== text.trim(); await this.page.waitForTimeout(100)) {
        if (Date.now() > end) throw new Error(`the editor has another text: ${await this.editorText()}`);
      }
    });
  }

  /** Clicks a line of the active editor and chooses a code action there. The menu lacks what was not known in time. */
  async codeAction(line, title) {
    const editor = this.page.locator('.editor-group-container.active');
    const action = this.page.locator('.action-widget .monaco-list-row', { hasText: title }).first();
    await this.until(async (timeout) => {
      await this.page.keyboard.press('Escape');
      await editor.locator('.view-line', { hasText: line }).first().click({ timeout });
      await this.editorFocused();
      await this.page.keyboard.press('Control+.');
    }, (timeout) => action.waitFor({ timeout }));
    await this.until((timeout) => action.click({ timeout }), (timeout) => action.waitFor({ state: 'hidden', timeout }));
  }

  lens(text) {
    return this.page.locator('.codelens-decoration a', { hasText: text }).first();
  }

  async lenses() {
    await this.page.locator('.codelens-decoration a').first().waitFor();
    return (await this.page.locator('.codelens-decoration a').allInnerTexts()).map((s) => s.trim());
  }

  /**
   * Waits for a notification, and returns what `use` makes of it. It hides by itself after some seconds, so a slow test finds
   * it in the list of notifications.
   */
  async withNotification(text, use) {
    const toast = this.page.locator('.notification-toast', { hasText: text }).first();
    const message = (item) => item.locator('.notification-list-item-message');
    if (await message(toast).waitFor({ timeout: WAIT / 4 }).then(() => true, () => false)) return use(toast, message(toast));
    const listed = this.page.locator('.notifications-center .monaco-list-row', { hasText: text }).first();
    await this.command('Notifications: Show Notifications');
    await message(listed).waitFor();
    const made = await use(listed, message(listed));
    if (await this.page.locator('.notifications-center').isVisible()) await this.command('Notifications: Hide Notifications');
    return made;
  }

  /** Waits for a notification and returns its text. */
  notification(text) {
    return this.withNotification(text, async (_, message) => (await message.innerText()).trim());
  }

  /** Presses a button of a notification. */
  answer(text, button) {
    return this.withNotification(text, async (item) => {
      await item.hover();
      const pressed = item.getByRole('button', { name: button, exact: true });
      await this.until((timeout) => pressed.click({ timeout }), (timeout) => pressed.waitFor({ state: 'hidden', timeout }));
    });
  }

  /** Presses a button of a modal dialog, for instance the workspace trust question. */
  async dialog(button) {
    const box = this.page.locator('.monaco-dialog-box');
    await box.waitFor();
    const said = (await box.innerText()).trim();
    const pressed = box.getByRole('button', { name: button }).first();
    if (button) await this.until((timeout) => pressed.click({ timeout }), (timeout) => box.waitFor({ state: 'hidden', timeout }));
    return said;
  }

  /** Trusts the workspace that was opened with `trust: false`. */
  async trustWorkspace() {
    await this.command('Workspaces: Manage Workspace Trust');
    const trust = this.page.locator('.workspace-trust-editor').getByRole('button', { name: /^Trust/ }).first();
    const restricted = this.page.locator('.statusbar-item', { hasText: 'Restricted Mode' });
    await this.until((timeout) => trust.click({ timeout }), (timeout) => restricted.waitFor({ state: 'detached', timeout }));
    await this.command('View: Close Editor');
  }

  async status(text) {
    const item = this.page.locator('.statusbar-item', { hasText: text }).first();
    await item.waitFor();
    return item;
  }

  /** Opens a view container by its activity bar title and returns the visible tree rows. */
  async view(title) {
    const action = this.page.locator('.activitybar .action-item', { has: this.page.locator(`a[aria-label^="${title}"]`) }).first();
    await action.waitFor();
    const bar = this.page.locator('.sidebar');
    await this.until(async (timeout) => { // a click on the one that is open closes it
      if (!(await action.evaluate((e) => e.classList.contains('checked')))) await action.click({ timeout });
    }, (timeout) => bar.getByText(title).first().waitFor({ timeout }));
    return bar;
  }

  treeItem(text) {
    return this.page.locator('.sidebar .monaco-list-row', { hasText: text }).first();
  }

  /** Locator inside the (single, visible) webview. */
  webview() {
    return this.page.frameLocator('iframe.webview.ready').frameLocator('#active-frame');
  }

  /** The page of the webview that shows this text; there may be several side by side. */
  async webviewWith(text, limit = WAIT) {
    for (const until = Date.now() + limit; Date.now() < until;) {
      for (const frame of this.page.frames()) {
        // A frame may be removed meanwhile.
        const found = frame.parentFrame() && await frame.getByText(text).first().isVisible().catch(() => false);
        if (found) return frame;
      }
      await this.page.waitForTimeout(100);
    }
    throw new Error(`no webview shows "${text}" after ${limit} ms`);
  }

  /** The visible text of the active editor. */
  async editorText() {
    const lines = this.page.locator('.editor-group-container.active .view-lines').first();
    return (await lines.innerText()).replaceAll('\u00a0', ' ');
  }

  /** Texts of the Problems view. */
  async problems() {
    await this.command('Problems: Focus on Problems View');
    const rows = this.page.locator('.markers-panel .monaco-list-row');
    await rows.first().waitFor();
    return (await rows.allInnerTexts()).map((s) => s.replace(/\s+/g, ' ').trim());
  }

  /** Goes to a problem in the Problems view and opens its quick fixes; `fix` chooses one by its title. */
  async quickFix(problem, fix) {
    const rows = this.page.locator('.action-widget .monaco-list-row');
    await this.until(async (timeout) => { // the editor may not know the problem yet
      await this.page.locator('.markers-panel .monaco-list-row', { hasText: problem }).first().dblclick({ timeout });
      await this.editorFocused();
      await this.page.keyboard.press('Control+.');
    }, (timeout) => rows.first().waitFor({ timeout }));
    if (!fix) return;
    // By keys, because something covers the list in older versions and takes the click.
    const focused = this.page.locator('.action-widget .monaco-list-row.focused', { hasText: fix });
    for (let left = await rows.count(); left > 0 && !(await focused.isVisible()); left--) {
      await this.page.keyboard.press('ArrowDown');
    }
    await focused.waitFor();
    await this.page.keyboard.press('Enter');
  }

  /** The visible text of the Output view. */
  async output() {
    const lines = this.page.locator('.output-view .view-lines');
    await lines.waitFor();
    return (await lines.innerText()).replaceAll('\u00a0', ' ');
  }

  /** What the window shows, for the message of a test that fails. */
  async shown() {
    const texts = async (selector) => (await this.page.locator(selector).allInnerTexts()).map((s) => s.replace(/\s+/g, ' ').trim()).filter(Boolean);
    const parts = {
      'quick input': [await this.quickInputText()],
      notifications: await texts('.notification-toast'),
      dialog: await texts('.monaco-dialog-box'),
      menu: await texts('.monaco-menu, .action-widget'),
      tab: await texts('.editor-group-container.active .tab.active'),
      'status bar': await texts('.statusbar-item[id*="mcp" i]'),
      'side bar': await texts('.sidebar .monaco-list-row'),
      focus: [await this.page.evaluate(() => {
        const { tagName, className } = document.activeElement ?? {};
        return `${tagName} ${className}`;
      })],
    };
    for (const frame of this.page.frames()) {
      const text = frame.name() ? await frame.locator('main').innerText({ timeout: 1000 }).catch(() => '') : '';
      if (text) (parts.pages ??= []).push(text.replace(/\s+/g, ' ').slice(0, 300));
    }
    return Object.entries(parts).map(([name, all]) => `  ${name}: ${all.filter(Boolean).join(' | ') || '-'}`).join('\n');
  }

  async shot(file, { settle = 400 } = {}) {
    await this.page.waitForTimeout(settle); // let toasts and list animations end
    fs.mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
    await this.page.screenshot({ path: file });
    return file;
  }
}

/** Runs in the page. */
function quickInputText() {
  const box = document.querySelector('.quick-input-widget');
  if (!box?.checkVisibility()) return '';
  const input = box.querySelector('input.input');
  const parts = [box.querySelector('.quick-input-title')?.textContent, input?.value, input?.placeholder,
    box.querySelector('.quick-input-message')?.textContent];
  const rows = [...box.querySelectorAll('.monaco-list-row')].map((row) => row.ariaLabel);
  return [...parts, ...rows].filter(Boolean).join(' | ');
}

/**
 * Runs mocha test files inside the real extension host, with the `vscode` module.
 * `root` is the folder whose node_modules has mocha (default: the extension). `press` names the button to
 * press if VS Code shows a dialog.
 * Returns { code, report, results, log, serverLog }; code 0 means all passed, and at least one ran.
 */
export async function runExtensionTests(options) {
  const { extension, tests, root = [extension].flat()[0], ui = 'bdd', timeout = 30_000, grep } = options;
  const files = tests.map((f) => path.resolve(f));
  for (const f of files) if (!fs.existsSync(f)) throw new Error(`no test file ${f}`);
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'vscode-tests-'));
  const report = path.join(dir, 'report.txt');
  const plan = JSON.stringify({ root: path.resolve(root), files, ui, timeout, grep, report });
  let opened;
  try {
    opened = await openPage({ ...options, testMode: true, env: { ...options.env, VSCODE_MOCHA: plan } }, (remote) => [
      ['extensionDevelopmentPath', remote([extension].flat()[0])],
      ['extensionTestsPath', remote(path.join(here, 'vscode-mocha.cjs'))],
    ]);
    const { page, server } = opened;
    const log = [];
    page.on('console', (m) => log.push(`${m.type()}: ${m.text()}`));
    if (options.press) {
      const button = page.locator('.monaco-dialog-box').getByRole('button', { name: options.press, exact: true });
      button.click({ timeout: 0 }).catch(() => {}); // the page is closed: there was no dialog
    }
    let code = await new Promise((ok, bad) => {
      const limit = options.limit ?? 300_000;
      const timer = setTimeout(() => bad(new Error(`the tests did not end in ${limit} ms:\n${read(report)}\n${log.slice(-20).join('\n')}`)), limit);
      page.exposeFunction('codeAutomationLog', () => {})
        .then(() => page.exposeFunction('codeAutomationExit', (c) => { clearTimeout(timer); ok(c); }))
        .then(() => page.goto(opened.url, { waitUntil: 'commit' }))
        .catch((e) => { clearTimeout(timer); bad(e); });
    });
    const results = JSON.parse(read(`${report}.json`) || '[]');
    if (code === 0 && !results.length) code = 1; // a run without tests is not a pass
    return { code, report: read(report), results, log, serverLog: server.log };
  } finally {
    await opened?.close();
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

const read = (f) => { try { return fs.readFileSync(f, 'utf8'); } catch { return ''; } };
