import { type PluginOffer, pluginReturns } from "@ambit/core";
import type { RunRequest, Skill } from "@ambit/core/contract";
import type { FileEntry, Harness, Sandbox } from "@ambit/core/plugin";
import { unlessAborted } from "../lifetime/linked-abort.js";
import { callPlugin } from "../lifetime/plugin-error.js";

/** Where agents look for skills by default. */
const usualSkillsFolder = ".agents/skills";

/** Puts the request's files into the workspace of its sandbox. @param backend of the sandbox, for its errors. */
export async function fillWorkspace(
  sandbox: Sandbox,
  backend: PluginOffer,
  request: RunRequest,
  { skillsFolder = usualSkillsFolder }: Pick<Harness, "skillsFolder">,
  signal: AbortSignal,
): Promise<void> {
  const files = workspaceFiles(request, sandbox.workspace, skillsFolder);
  if (files.length === 0) return;
  await unlessAborted(signal, () =>
    callPlugin(backend, "writeFiles", pluginReturns.nothing, () => sandbox.writeFiles(files)),
  );
}

/** The files of a new workspace: those of the request, and its skills where agents look for them. Pure. */
function workspaceFiles(
  request: RunRequest,
  workspace: string,
  skillsFolder: string = usualSkillsFolder,
): readonly FileEntry[] {
  const files = request.harnessFiles.map(({ path, content }) => ({ path: `${workspace}/${path}`, content }));
  return [
    ...files,
    ...request.skills.flatMap((skill) => skillFiles(skill, `${workspace}/${skillsFolder}/${skill.name}`)),
  ];
}

/** A folder in the Agent Skills format: `SKILL.md` with its front matter, and the files next to it. */
function skillFiles(skill: Skill, folder: string): FileEntry[] {
  const frontMatter = [
    "---",
    `name: ${skill.name}`,
    `description: ${JSON.stringify(skill.description)}`,
    ...(skill.disableModelInvocation === true ? ["disable-model-invocation: true"] : []),
    "---",
  ];
  const files = (skill.files ?? []).map(({ path, content, executable }) => ({
    path: `${folder}/${path}`,
    content,
    // Executable only if both the file and its skill allow it.
    executable: executable === true && skill.allowExecutableFiles === true,
  }));
  return [{ path: `${folder}/SKILL.md`, content: `${frontMatter.join("\n")}\n\n${skill.body}\n` }, ...files];
}
