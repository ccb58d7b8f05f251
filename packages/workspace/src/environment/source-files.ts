import { SetupFailed } from "@ambit/core";
import type { RunRequest } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import { runScript } from "../program/run-script.js";
import { placeOf } from "../sources/place.js";

const script = 'cd "$1" && xargs -0 rm -f -- < "$2" && rm -f -- "$2"';
const maxCharacters = 2_000;

/**
 * Leaves in a setup's workspace what its commands made: the files of another request's sources take their place.
 * @throws SetupFailed, SandboxFailed; the signal's reason
 */
export async function removeSources(
  setup: Sandbox,
  { workspace }: Pick<RunRequest, "workspace">,
  signal: AbortSignal,
): Promise<void> {
  const paths = (workspace?.sources ?? []).flatMap((source) =>
    source.type === "files" ? source.files.map(({ path }) => `./${placeOf(source)}${path}\0`) : [],
  );
  if (paths.length === 0) return;
  // There may be more than fit into arguments.
  const list = `${setup.home}/.ambit-sources`;
  await setup.writeFiles([{ path: list, content: paths.join("") }]);
  const { code, stderr } = await runScript(setup, script, [setup.workspace, list], { maxCharacters, signal });
  if (code !== 0)
    throw new SetupFailed(
      `The files of workspace.sources can't be told from what environment.setup made: ${stderr.trim()}. Leave environment.inputs out, or let the commands leave these files in their places.`,
    );
}
