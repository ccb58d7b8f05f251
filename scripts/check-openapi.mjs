// npm run check:openapi: what the linters of OpenAPI say of the document of a server that has every plugin with routes or
// fields. Says in one line where they can't be downloaded.
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environment, startServer } from "./start-server.mjs";

const plugins = fileURLToPath(new URL("../plugins", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "ambit-check-openapi-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

/** Together they have two hundred packages, so they aren't this repository's. */
const linters = [
  {
    package: "@stoplight/spectral-cli@6.16.3",
    command: "spectral lint --quiet --ruleset rules.json --fail-severity hint openapi.json",
  },
  {
    package: "@redocly/cli@2.77.0",
    command: "redocly lint --extends recommended --max-problems 1000 --format json openapi.json",
  },
];

/**
 * @param {readonly string[]} args of npm
 * @returns {Promise<{ readonly code: number, readonly output: string, readonly error: string }>}
 */
function npm(args) {
  // Neither of them tells anyone that it runs.
  const env = { ...environment, SCARF_ANALYTICS: "false", REDOCLY_TELEMETRY: "off" };
  return new Promise((resolve) => {
    execFile("npm", args, { cwd: folder, env, maxBuffer: 64 * 1024 * 1024 }, (failure, output, error) =>
      resolve({ code: failure === null ? 0 : 1, output, error }),
    );
  });
}

/**
 * Spectral fails for each problem, Redocly only for errors.
 * @param {{ readonly code: number, readonly output: string, readonly error: string }} ended
 */
function problemsOf({ code, output, error }) {
  if (code !== 0) return output + error;
  const problems = output.startsWith("{") ? JSON.parse(output).problems : [];
  return problems.length === 0 ? "" : JSON.stringify(problems, null, 2);
}

const doors = readdirSync(plugins)
  .filter((name) => name.startsWith("door-") && name !== "door-acp")
  .map((name) => join(plugins, name, "dist/index.js"));
const installed = await npm([
  "install",
  "--silent",
  "--no-audit",
  "--no-fund",
  "--ignore-scripts",
  ...linters.map((one) => one.package),
]);
if (installed.code !== 0) {
  console.log("check:openapi isn't run: the linters of OpenAPI can't be installed here");
  process.exit(0);
}
const server = await startServer(
  folder,
  { extends: "defaults", plugins: doors },
  "the-token-of-check-openapi",
);
try {
  writeFileSync(join(folder, "openapi.json"), await (await fetch(`${server.url}/openapi.json`)).text());
} finally {
  server.close();
}
writeFileSync(join(folder, "rules.json"), JSON.stringify({ extends: ["spectral:oas"] }));
for (const linter of linters) {
  const problems = problemsOf(await npm(["exec", "--no", "--", ...linter.command.split(" ")]));
  if (problems === "") continue;
  console.error(`${linter.package}:\n${problems}`);
  process.exitCode = 1;
}
