import { execFileSync } from "node:child_process";
import { globSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** Beside the main file of the package that serves it. */
export const pageFolder = fileURLToPath(new URL("console", import.meta.resolve("ambit")));

const changedAt = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** Builds the page, unless the built one is newer than everything that it is made of. */
export function buildPage(): void {
  const sources = globSync(["src/**/*", "public/*", "index.html", "vite.config.ts", "package.json"], {
    cwd: root,
  });
  const newest = Math.max(...sources.map((path) => changedAt(`${root}/${path}`)));
  if (changedAt(`${pageFolder}/index.html`) > newest) return;
  execFileSync("npx", ["vite", "build", "--logLevel", "error"], {
    cwd: root,
    stdio: "inherit",
    // Vitest sets another one, for which React would be its development build.
    env: { ...process.env, NODE_ENV: "production" },
  });
}
