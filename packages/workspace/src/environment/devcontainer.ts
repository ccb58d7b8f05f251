import { isSameImage, SetupFailed } from "@ambit/core";
import { type EnvironmentRequest, limits, type RunRequest } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import { createScanner, getNodeValue, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { z } from "zod";
import { runScript } from "../programs.js";
import type { SetupCommand } from "./commands.js";

/** Where it is looked for, in this order. */
const usualPaths = [".devcontainer/devcontainer.json", ".devcontainer.json"];
/** The exit code of the script below where there is no such file. */
const notThere = 44;
const script = `count="$1"; shift; for file; do [ -f "$file" ] && exec head -c "$count" "$file"; done; exit ${notThere}`;

type Asked = NonNullable<EnvironmentRequest["devcontainer"]>;

/**
 * Reads what the repository's `devcontainer.json` asks for, in the sandbox of the setup, which has the files of the sources and
 * nothing else: no agent was there.
 * @throws SetupFailed for what can't be read or isn't supported; SandboxFailed; the signal's reason
 */
export async function readDevcontainer(
  sandbox: Sandbox,
  asked: Asked,
  folder: string,
  warn: (message: string) => void,
  signal: AbortSignal,
): Promise<Devcontainer> {
  const paths = asked.path === undefined ? usualPaths : [asked.path];
  const devcontainer = devcontainerIn(await textOf(sandbox, paths, folder, signal), folder);
  const sentence = ignoredSentence(devcontainer.ignored);
  if (sentence !== undefined) warn(sentence);
  const { image } = devcontainer;
  if (image === undefined || isSameImage(image, sandbox.image?.name)) return devcontainer;
  const shown = JSON.stringify(image.slice(0, 200));
  if (asked.image === "ignore") {
    warn(`has the image ${shown}, which is ignored: the sandbox's own is used, as the request says`);
    return devcontainer;
  }
  throw wrong(
    `is made for the image ${shown}, and the sandbox has another one: name a sandbox whose image it is, or set environment.devcontainer.image to "ignore" if its commands work without it`,
  );
}

async function textOf(
  sandbox: Sandbox,
  paths: readonly string[],
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const files = paths.map((path) => `${folder}/${path}`);
  const maxCharacters = maxDevcontainerBytes + 1;
  const reading = { maxCharacters, signal };
  const { code, stdout: text } = await runScript(sandbox, script, [String(maxCharacters), ...files], reading);
  if (code === notThere)
    throw wrong(
      `isn't there: the commit has no ${paths.join(" and no ")}; set environment.devcontainer.path`,
    );
  if (code !== 0) throw wrong("couldn't be read");
  if (Buffer.byteLength(text) > maxDevcontainerBytes)
    throw wrong(`has more than ${maxDevcontainerBytes} bytes`);
  return text;
}

/** The folder of the request's one git source. */
export function repositoryFolder(
  { workspace }: Pick<RunRequest, "workspace">,
  sandbox: Pick<Sandbox, "workspace">,
): string {
  const source = (workspace?.sources ?? []).find(({ type }) => type === "git");
  const into = source?.type === "git" ? (source.into ?? "") : "";
  return [sandbox.workspace, ...into.split("/").filter((part) => part !== "" && part !== ".")].join("/");
}

/** Bytes of the file. */
const maxDevcontainerBytes = 65_536;
/** Levels of lists and objects; its parser calls itself for each. */
const maxDepth = 16;
const maxArguments = 256;
/** Names of ignored keys in one warning, and characters of one. */
const maxNamed = 20;
const maxName = 60;

/** What Ambit takes from a `devcontainer.json`. */
interface Devcontainer {
  readonly commands: readonly SetupCommand[];
  readonly env: Readonly<Record<string, string>>;
  /** The image that it is made for. */
  readonly image: string | undefined;
  /** Keys that change nothing here. */
  readonly ignored: readonly string[];
}

/** The commands that run, in this order. */
const commandKeys = ["onCreateCommand", "updateContentCommand", "postCreateCommand"] as const;

const otherImage =
  "put what it installs into the image of the server's sandbox, or install it by environment.setup";
const otherSandbox =
  "the request's boundary and the server's configuration decide what the sandbox is; leave it out";
const otherFiles = "name the files in workspace.sources";

/** What isn't supported, and what to do instead: without it the commands would run in something else than they need. */
const refused: Readonly<Record<string, string>> = {
  initializeCommand:
    "would run on the host, outside every boundary; move what it does to onCreateCommand, which runs in the sandbox",
  build: otherImage,
  dockerFile: otherImage,
  context: otherImage,
  dockerComposeFile: otherImage,
  service: otherImage,
  runServices: otherImage,
  features: otherImage,
  overrideFeatureInstallOrder: otherImage,
  mounts: otherFiles,
  workspaceMount: otherFiles,
  privileged: otherSandbox,
  capAdd: otherSandbox,
  securityOpt: otherSandbox,
  runArgs: otherSandbox,
  appPort: otherSandbox,
};

/** Keys that no warning names, since they say nothing about the container. */
const plain: ReadonlySet<string> = new Set(["name", "$schema"]);

const words = z.array(z.string().max(limits.setupCharacters)).min(1).max(maxArguments);
const line = z.string().max(limits.setupCharacters);
const commandSchema = z.union([line, words, z.record(z.string().max(200), z.union([line, words]))]);
const name = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/);
const value = z
  .string()
  .max(limits.setupCharacters)
  .regex(/^[^\0]*$/);

const fileSchema = z.looseObject({
  image: z.string().min(1).max(1_000).optional(),
  onCreateCommand: commandSchema.optional(),
  updateContentCommand: commandSchema.optional(),
  postCreateCommand: commandSchema.optional(),
  containerEnv: z.record(name, value).optional(),
  /** Null takes the container's own one away. */
  remoteEnv: z.record(name, value.nullable()).optional(),
});

/**
 * Reads the file's text. Pure.
 * @param folder of the repository, as the commands see it.
 * @throws SetupFailed for what can't be read or isn't supported
 */
export function devcontainerIn(text: string, folder: string): Devcontainer {
  const file = parsed(text);
  for (const key of Object.keys(file)) {
    const fix = Object.hasOwn(refused, key) ? refused[key] : undefined;
    if (fix !== undefined) throw wrong(`has ${key}, which Ambit doesn't do: ${fix}`);
  }
  const commands = commandKeys.flatMap((key) => commandsOf(key, file[key], folder));
  const env: Record<string, string> = {};
  for (const [key, variables] of Object.entries({
    containerEnv: file.containerEnv ?? {},
    remoteEnv: file.remoteEnv ?? {},
  }))
    for (const [variable, given] of Object.entries(variables)) {
      if (given === null) delete env[variable];
      else env[variable] = replaced(given, `${key}.${variable}`, folder);
    }
  const taken: ReadonlySet<string> = new Set([...Object.keys(fileSchema.shape), ...plain]);
  const ignored = Object.keys(file).filter((key) => !taken.has(key));
  return { commands, env, image: file.image, ignored };
}

/** One sentence about keys that change nothing here; undefined without any. Pure. */
export function ignoredSentence(ignored: readonly string[]): string | undefined {
  if (ignored.length === 0) return undefined;
  const named = ignored.slice(0, maxNamed).map((key) => JSON.stringify(key.slice(0, maxName)));
  const more = ignored.length > maxNamed ? ` and ${ignored.length - maxNamed} more` : "";
  return `has keys that are ignored: ${named.join(", ")}${more}. They are for editors, or for every start of a container`;
}

function parsed(text: string): z.infer<typeof fileSchema> {
  if (depthOf(text) > maxDepth) throw wrong(`has more than ${maxDepth} levels of lists and objects`);
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined || tree === undefined) {
    const what = first === undefined ? "it is empty" : printParseErrorCode(first.error);
    const at = text.slice(0, first?.offset ?? 0).split("\n").length;
    throw wrong(`isn't JSON with comments (line ${at}: ${what})`);
  }
  const file = fileSchema.safeParse(getNodeValue(tree));
  if (file.success) return file.data;
  const [issue] = file.error.issues;
  const where = issue?.path.map((part) => String(part).slice(0, maxName)).join(".") ?? "";
  throw wrong(`can't be used: ${where === "" ? "it must be an object" : `${where} has another form`}`);
}

/** Levels of lists and objects, without a call for each. */
function depthOf(text: string): number {
  const scanner = createScanner(text, true);
  let depth = 0;
  let deepest = 0;
  for (scanner.scan(); scanner.getTokenLength() > 0; scanner.scan()) {
    const token = text.slice(scanner.getTokenOffset(), scanner.getTokenOffset() + scanner.getTokenLength());
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

function commandsOf(
  key: string,
  command: z.infer<typeof commandSchema> | undefined,
  folder: string,
): readonly SetupCommand[] {
  if (command === undefined) return [];
  if (typeof command !== "string" && !Array.isArray(command))
    return Object.entries(command).flatMap(([part, one]) => commandsOf(`${key}.${part}`, one, folder));
  const words = typeof command === "string" ? [command] : command;
  const [first = "", ...rest] = words.map((word) => replaced(word, key, folder));
  if (first.trim() === "") return [];
  const named = { name: `environment.devcontainer: ${key.slice(0, 2 * maxName)}`, folder };
  if (typeof command === "string") return [{ ...named, argv: ["/bin/sh", "-c", first], shown: first }];
  // The shell looks the program up: one that isn't there is a command that failed.
  const argv = ["/bin/sh", "-c", 'exec "$@"', "sh", first, ...rest] as const;
  return [{ ...named, argv, shown: [first, ...rest].join(" ") }];
}

/** The beginning of a variable of `devcontainer.json` that has no meaning here. */
const others =
  /\$\{(?:(?:localEnv|env|containerEnv):|(?:localWorkspaceFolder(?:Basename)?|devcontainerId)\})/;

/** Replaces the variables of `devcontainer.json` that have a meaning here. */
function replaced(text: string, key: string, folder: string): string {
  if (text.includes("\0")) throw wrong(`has a NUL in ${key}`);
  const base = folder.slice(folder.lastIndexOf("/") + 1);
  const result = text
    .replace(/\$\{containerWorkspaceFolder\}/g, () => folder)
    .replace(/\$\{containerWorkspaceFolderBasename\}/g, () => base);
  // A variable without an end counts too: looking for each end would take time with the square of the text's length.
  const { index } = others.exec(result) ?? {};
  if (index === undefined) return result;
  const [unknown = ""] = result.slice(index + 2, index + 2 + maxName).split("}");
  const why = /^(?:localEnv|env):/.test(unknown)
    ? "is of the host, which nothing inside learns of"
    : "has no value here";
  throw wrong(
    `has \${${unknown}} in ${key.slice(0, 2 * maxName)}, which ${why}: write the value itself, or set environment.env`,
  );
}

export function wrong(what: string): SetupFailed {
  return new SetupFailed(`environment.devcontainer: the repository's devcontainer.json ${what}.`);
}
