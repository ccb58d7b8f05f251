import { isSameImage } from "@ambit/core";
import type { EnvironmentRequest, RunRequest } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import { runScript } from "../program/run-script.js";
import {
  type Devcontainer,
  devcontainerIn,
  ignoredSentence,
  maxDevcontainerBytes,
  wrong,
} from "./devcontainer-file.js";

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
  const found = devcontainerIn(await textOf(sandbox, paths, folder, signal), folder);
  const sentence = ignoredSentence(found.ignored);
  if (sentence !== undefined) warn(sentence);
  const { image } = found;
  if (image === undefined || isSameImage(image, sandbox.image?.name)) return found;
  const shown = JSON.stringify(image.slice(0, 200));
  if (asked.image === "ignore") {
    warn(`has the image ${shown}, which is ignored: the sandbox's own is used, as the request says`);
    return found;
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
  const asked = { maxCharacters, signal };
  const { code, stdout: text } = await runScript(sandbox, script, [String(maxCharacters), ...files], asked);
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
