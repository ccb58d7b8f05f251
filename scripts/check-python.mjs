// npm run check:python: the Python client, as its users get it: lint, types, generated files, its tests against a real
// server, and the program of its README with the built wheel. Says in one line where Python packages can't be downloaded.
// With `-- --write`, it writes the generated files first.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pythonEnvironment } from "./python-environment.mjs";
import { environment, startServer } from "./start-server.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const project = join(root, "clients/python");
const token = "the-token-of-check-python-which-is-long-enough";
const folder = mkdtempSync(join(tmpdir(), "ambit-check-python-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

/**
 * @param {string} program
 * @param {readonly string[]} args
 * @param {Readonly<Record<string, string>>} variables
 * @throws Error if it fails
 */
async function run(program, args, variables = {}) {
  const env = { ...environment, PYTHONDONTWRITEBYTECODE: "1", ...variables };
  const child = spawn(program, args, { cwd: project, env, stdio: "inherit" });
  const [code, signal] = await once(child, "close");
  if (code !== 0) throw new Error(`${args.join(" ").slice(0, 100)} ended with ${signal ?? code}`);
}

/** The program of the README as a user runs it: from the wheel, in an environment that has nothing else of this project. */
async function runReadme(/** @type {string} */ python, /** @type {string} */ url) {
  const wheels = join(folder, "wheels");
  const pip = ["-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"];
  await run(python, [...pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, "."]);
  const site = join(folder, "site");
  const fromWheels = ["--no-index", "--find-links", wheels, "--no-deps", "--target", site, "ambit-client"];
  await run(python, [...pip, "install", ...fromWheels]);
  const [, program = ""] =
    /```python\n([\s\S]*?)```/.exec(readFileSync(join(project, "README.md"), "utf8")) ?? [];
  const file = join(folder, "readme.py");
  writeFileSync(
    file,
    `token = ${JSON.stringify(token)}\n${program.replaceAll("http://127.0.0.1:8765", url)}`,
  );
  await run(python, [file], { PYTHONPATH: site });
}

async function check(/** @type {string} */ python) {
  // The client's models are those of the contract, without the fields of another platform's dialect.
  const configuration = { extends: "defaults", without: ["@ambit/compat-agenta"] };
  const server = await startServer(folder, configuration, token);
  try {
    const document = join(folder, "openapi.json");
    writeFileSync(document, await (await fetch(`${server.url}/openapi.json`)).text());
    const isWritten = process.argv.includes("--write");
    await run(python, ["tools/generate.py", document, ...(isWritten ? [] : ["--check"])]);
    await run(python, ["-m", "ruff", "check", "--quiet", "."]);
    await run(python, ["-m", "ruff", "format", "--check", "--quiet", "."]);
    await run(python, ["-m", "mypy", "--cache-dir", join(folder, "mypy")]);
    await run(python, ["-m", "pytest"], {
      AMBIT_TEST_URL: server.url,
      AMBIT_TEST_TOKEN: token,
      PYTHONPATH: join(project, "src"),
      ...(process.env.AMBIT_SOAK === undefined ? {} : { AMBIT_SOAK: process.env.AMBIT_SOAK }),
    });
    await runReadme(python, server.url);
  } finally {
    server.close();
  }
}

try {
  const requirements = join(project, "requirements.txt");
  const { python } = await pythonEnvironment("python-client", requirements).catch((error) => {
    console.log(`check:python isn't run: the Python packages can't be installed here (${error.message})`);
    process.exit(0);
  });
  await check(python);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
