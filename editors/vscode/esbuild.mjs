// Bundles the extension into one file: `node esbuild.mjs [--production] [--watch]`.
import { context } from "esbuild";

const production = process.argv.includes("--production");
const bundle = await context({
  entryPoints: ["src/extension.ts"],
  outfile: "out/extension.js",
  bundle: true,
  format: "cjs",
  platform: "node",
  target: "node22",
  external: ["vscode"],
  minify: production,
  // Names stay readable in the stacks that people paste into reports.
  keepNames: false,
  sourcemap: production ? false : "linked",
  logLevel: "warning",
});
if (process.argv.includes("--watch")) {
  await bundle.watch();
} else {
  await bundle.rebuild();
  await bundle.dispose();
}
