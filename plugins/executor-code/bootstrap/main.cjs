// Runs one code tool: the call comes on stdin, its one reply leaves on descriptor 3, prints go to stderr.
const { closeSync, openSync, readFileSync, writeFileSync, writeSync } = require("node:fs");
const { createRequire } = require("node:module");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");
const { compileFunction } = require("node:vm");

const replyTo = ownedDescriptor(3);

/** Opened anew it is closed on exec, so that no program the tool starts can write into the reply. */
function ownedDescriptor(descriptor) {
  try {
    const owned = openSync(`/proc/self/fd/${descriptor}`, "w");
    closeSync(descriptor);
    return owned;
  } catch {
    // No /proc here: the descriptor serves as it is.
    return descriptor;
  }
}

function reply(content) {
  const bytes = Buffer.from(JSON.stringify(content));
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(replyTo, bytes, written);
    } catch (error) {
      // The pipe is full and not blocking: its reader is about to make room.
      if (error.code !== "EAGAIN") throw error;
    }
  }
  process.exit(0);
}

const lookForMain = '\n;module.toolMain = typeof main === "undefined" ? undefined : main;';
const exportMain = '\n;export const toolMain = typeof main === "undefined" ? undefined : main;';

async function load(source) {
  try {
    return loadCommonJs(source);
  } catch (error) {
    if (!(error instanceof SyntaxError) || !isModuleSyntax(error)) throw error;
  }
  const file = join(process.env.TMPDIR ?? "/tmp", `tool-${process.pid}.mjs`);
  writeFileSync(file, source + exportMain, { mode: 0o600 });
  const exports = await import(pathToFileURL(file).href);
  return exports.toolMain ?? exports.default;
}

function loadCommonJs(source) {
  const filename = join(process.cwd(), "tool.cjs");
  const module = { exports: {}, filename, toolMain: undefined };
  const names = ["exports", "require", "module", "__filename", "__dirname"];
  const compiled = compileFunction(source + lookForMain, names, { filename });
  compiled(module.exports, createRequire(filename), module, filename, process.cwd());
  const { exports } = module;
  return module.toolMain ?? exports.main ?? exports.default ?? exports;
}

function isModuleSyntax({ message }) {
  return /import statement|import\.meta|Unexpected token 'export'|await is only valid|Unexpected identifier.*import/.test(
    message,
  );
}

async function run(call) {
  const main = await load(call.code);
  if (typeof main !== "function") {
    return { failed: "code tool must define or export a callable main(inputs) function" };
  }
  const value = (await main(call.arguments)) ?? null;
  const json = JSON.stringify(value);
  if (json === undefined) return { failed: `main returned a value that is not JSON: a ${typeof value}` };
  return { returned: value };
}

function explain(error) {
  if (!(error instanceof Error)) return `code tool threw ${String(error)}`;
  const [, ...frames] = (error.stack ?? "").split("\n    at ");
  const own = frames.filter((frame) => /\btool(-\d+)?\.[cm]js\b/.test(frame)).slice(0, 5);
  return [`${error.name}: ${error.message}`, ...own.map((frame) => `    at ${frame}`)].join("\n");
}

const call = JSON.parse(readFileSync(0, "utf8"));
Object.assign(process.env, call.env);
process.on("uncaughtException", (error) => reply({ failed: explain(error) }));
run(call).then(reply, (error) => reply({ failed: explain(error) }));
