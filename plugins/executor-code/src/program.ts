import { readFileSync, realpathSync } from "node:fs";
import { delimiter, dirname } from "node:path";
import type { Command, ImageRootfs, ToolCall } from "@ambit/core/plugin";
import type { CodeConfig } from "./config.js";

export type Runtime = "python" | "node";

const bootstraps: Readonly<Record<Runtime, string>> = {
  python: readFileSync(new URL("../bootstrap/main.py", import.meta.url), "utf8"),
  node: readFileSync(new URL("../bootstrap/main.cjs", import.meta.url), "utf8"),
};

/** Kept apart from stdout before the interpreter starts: Node can't move a descriptor itself. */
const replyOnThree = 'exec 3>&1 1>&2; exec "$@"';

/**
 * The process that runs a tool. Its arguments hold our own bootstrap and nothing of the tool's: code, arguments and
 * values travel on stdin, where no other process can read them.
 */
export function programOf(
  runtime: Runtime,
  config: CodeConfig,
  image: ImageRootfs | undefined,
): Pick<Command, "argv" | "env"> {
  const interpreter = config.interpreters[runtime];
  return {
    argv:
      runtime === "python"
        ? [interpreter, "-I", "-c", bootstraps.python]
        : ["/bin/sh", "-c", replyOnThree, "sh", interpreter, "-e", bootstraps.node],
    // HOME and TMPDIR are the sandbox's to set: each tool has its own.
    env: { PATH: image?.searchPath ?? runnerPath(config), LANG: "C.UTF-8", LC_ALL: "C.UTF-8" },
  };
}

function runnerPath({ path }: CodeConfig): string {
  const ownNode = dirname(realpathSync(process.execPath));
  return [path, ownNode].join(delimiter);
}

/** What the bootstrap reads from stdin. */
export function stdinOf({ tool, arguments: given }: ToolCall): string {
  return JSON.stringify({ code: tool.code ?? "", env: tool.env ?? {}, arguments: given });
}
