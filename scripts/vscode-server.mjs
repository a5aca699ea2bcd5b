// Starts the VS Code server that get-code-server installed, on a free port and with a separate profile, and stops it with
// every process that it started. vscode-drive.mjs opens windows on it.
import { spawn, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
/** The longest wait for any one thing. */
export const WAIT = Number(process.env.VSCODE_DRIVE_TIMEOUT_MS || 120_000);

const SETTINGS = {
  'workbench.startupEditor': 'none',
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'workbench.enableExperiments': false,
  'workbench.tips.enabled': false,
  'security.workspace.trust.startupPrompt': 'never', // older versions would ask in a dialog
  'workbench.editor.useModal': 'off', // settings, trust and the like as ordinary tabs
  'telemetry.telemetryLevel': 'off',
  'extensions.autoUpdate': false,
  'extensions.autoCheckUpdates': false,
  'extensions.ignoreRecommendations': true,
  'git.enabled': false,
  'workbench.hover.delay': 3_600_000, // a tooltip stays while the mouse rests, and takes the clicks on what it covers
  'files.autoSave': 'off', // in a browser it saves after a second, so a test that reverts a change would race with it
};

const cache = () => path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'mcp-sidecar');

export function serverHome(home) {
  const dir = path.resolve(home || process.env.VSCODE_TEST_HOME || path.join(cache(), 'code-server'));
  if (!fs.existsSync(path.join(dir, 'READY'))) {
    throw new Error(`no VS Code server in ${dir}: run ${path.join(here, 'get-code-server')} ${dir}`);
  }
  return dir;
}

export function findChromium() {
  const names = process.env.CHROMIUM ? [process.env.CHROMIUM] : ['chromium', 'chromium-browser', 'google-chrome', path.join(cache(), 'chromium/bin/chromium')];
  for (const name of names) {
    if (path.isAbsolute(name) && fs.existsSync(name)) return name;
    for (const dir of (process.env.PATH || '').split(path.delimiter)) {
      const file = path.join(dir, name);
      if (fs.existsSync(file)) return file;
    }
  }
  throw new Error(`no browser found (${names.join(', ')}); run ${path.join(here, 'get-chromium')}, or set CHROMIUM`);
}

/** Starts the server on a free loopback port. Returns { url, authority, token, log, stop }. */
export async function startServer({ home, profile, extension = [], vsix = [], trust = true, testMode = false, dark = false, env = {}, settings = {}, machineSettings }) {
  const root = serverHome(home);
  const node = path.join(root, 'node/bin/node');
  const main = path.join(root, 'vscode/out/server-main.js');
  const dirs = ['--server-data-dir', path.join(profile, 'server'), '--user-data-dir', path.join(profile, 'user'),
    '--extensions-dir', path.join(profile, 'extensions')];
  fs.mkdirSync(path.join(profile, 'user/User'), { recursive: true });
  fs.mkdirSync(path.join(profile, 'extensions'), { recursive: true });
  fs.writeFileSync(path.join(profile, 'user/User/settings.json'), JSON.stringify({ ...SETTINGS, ...(dark && { 'workbench.colorTheme': 'Dark Modern' }), ...settings }, null, 2));
  if (machineSettings) { // those of scope `machine`, which a remote window does not take from the user's settings
    fs.mkdirSync(path.join(profile, 'user/Machine'), { recursive: true });
    fs.writeFileSync(path.join(profile, 'user/Machine/settings.json'), JSON.stringify(machineSettings));
  }
  const local = [process.env.NO_PROXY || process.env.no_proxy, '127.0.0.1', 'localhost'].filter(Boolean).join(',');
  // An empty gallery: no request goes to the extension market. With VSCODE_CLI the extension host keeps the environment
  // it gets, instead of that of a login shell of the user.
  const fullEnv = { ...process.env, NO_PROXY: local, no_proxy: local, EXTENSIONS_GALLERY: '{}', VSCODE_CLI: '1', ...env };
  for (const file of [vsix].flat()) {
    try {
      execFileSync(node, [main, ...dirs, '--accept-server-license-terms', '--install-extension', path.resolve(file), '--force'],
        { env: fullEnv, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: WAIT });
    } catch (e) {
      throw new Error(`could not install ${file}: ${e.stdout || ''}${e.stderr || e.message}`);
    }
  }
  // Tests run on behalf of the first extension, which VS Code loads as one in development.
  registerInPlace(path.join(profile, 'extensions/extensions.json'), [extension].flat().slice(testMode ? 1 : 0));
  const token = randomBytes(16).toString('hex');
  const args = [main, '--host', '127.0.0.1', '--port', '0', '--connection-token', token, '--accept-server-license-terms',
    '--telemetry-level', 'off', '--disable-experiments', '--reconnection-grace-time', '1', ...dirs];
  if (trust) args.push('--disable-workspace-trust');
  // Development extensions and extension tests work in a built VS Code only with this;
  // it also hides notification toasts, so window tests run without it.
  if (testMode) args.push('--enable-smoke-test-driver');
  const child = spawn(node, args, { env: fullEnv, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const signal = (s) => { try { process.kill(-child.pid, s); } catch { /* gone already */ } };
  const atExit = () => signal('SIGKILL');
  process.once('exit', atExit);
  for (const s of ['SIGINT', 'SIGTERM', 'SIGHUP']) { // an interrupted test run stops the server too
    if (!process.listenerCount(s)) process.once(s, () => process.exit(1));
  }
  const ended = new Promise((done) => child.once('exit', done));
  const server = {
    token, log: '',
    async stop() {
      signal('SIGTERM');
      await Promise.race([ended, new Promise((r) => setTimeout(r, 5000).unref())]);
      signal('SIGKILL'); // whatever is left of its group: extension hosts, language servers
      process.removeListener('exit', atExit);
    },
  };
  try {
    await new Promise((ok, bad) => {
      const timer = setTimeout(() => bad(new Error('the server did not start in time')), WAIT);
      const take = (data) => {
        server.log = (server.log + data).slice(-200_000);
        const m = /Extension host agent listening on (\d+)/.exec(server.log);
        if (m && !server.authority) {
          server.authority = `127.0.0.1:${m[1]}`;
          server.url = `http://${server.authority}/?tkn=${token}`;
          clearTimeout(timer);
          ok();
        }
      };
      child.stdout.on('data', take);
      child.stderr.on('data', take);
      child.once('error', bad);
      child.once('exit', (code) => { clearTimeout(timer); bad(new Error(`the server ended (${code}):\n${server.log}`)); });
    });
  } catch (e) {
    await server.stop();
    throw e;
  }
  return server;
}

/** Registers unpacked extensions in the profile, so that they load from their folders. */
function registerInPlace(register, folders) {
  if (!folders.length) return;
  const known = fs.existsSync(register) ? JSON.parse(fs.readFileSync(register, 'utf8')) : [];
  for (const folder of folders) {
    const { publisher, name, version, main } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
    const code = main && path.resolve(folder, main);
    if (code && !fs.existsSync(code) && !fs.existsSync(`${code}.js`)) throw new Error(`${code} is missing: build the extension first`);
    known.push({ identifier: { id: `${publisher}.${name}` }, version, location: { $mid: 1, scheme: 'file', path: path.resolve(folder) } });
  }
  fs.writeFileSync(register, JSON.stringify(known));
}
