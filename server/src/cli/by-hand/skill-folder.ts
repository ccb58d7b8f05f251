import { basename, resolve } from "node:path";
import type { skillSchema } from "@ambit/core/contract";
import { parse } from "yaml";
import { z } from "zod";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { filesIn } from "./folder-files.js";

export type SkillInput = z.input<typeof skillSchema>;

/** What the Agent Skills format has in front of a skill's text. Further keys are for other programs. */
const frontMatterSchema = z.looseObject({
  name: z.string().optional(),
  description: z.string().optional(),
  "disable-model-invocation": z.boolean().optional(),
});

const skillFile = "SKILL.md";

/**
 * A skill from a folder in the Agent Skills format, with the text files next to its `SKILL.md`.
 * @throws ConfigurationInvalid for a folder without one, or with files that are no text
 */
export async function skillFrom(folder: string): Promise<SkillInput> {
  const { files } = await filesIn(folder);
  const texts = files.map(({ path, content, executable }) => ({
    path,
    executable,
    content: textOf(content, `${folder}/${path}`),
  }));
  const main = texts.find(({ path }) => path === skillFile);
  if (main === undefined) throw new ConfigurationInvalid(folder, [`has no ${skillFile}`]);
  const { head, body } = parts(main.content);
  const frontMatter = frontMatterSchema.safeParse(head === "" ? {} : parsed(head, folder));
  if (!frontMatter.success)
    throw new ConfigurationInvalid(`${folder}/${skillFile}`, [z.prettifyError(frontMatter.error)]);
  const { name = basename(resolve(folder)), description, ...others } = frontMatter.data;
  return {
    name,
    description,
    body,
    files: texts.filter(({ path }) => path !== skillFile),
    disableModelInvocation: others["disable-model-invocation"],
    // The user's own skill, as it is.
    allowExecutableFiles: true,
  };
}

function parsed(head: string, folder: string): unknown {
  try {
    return parse(head);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ConfigurationInvalid(`${folder}/${skillFile}`, [`its front matter is no YAML: ${reason}`], {
      cause,
    });
  }
}

function parts(text: string): { readonly head: string; readonly body: string } {
  const lines = text.split(/\r?\n/);
  const end = lines[0] === "---" ? lines.indexOf("---", 1) : -1;
  if (end < 0) return { head: "", body: text };
  return {
    head: lines.slice(1, end).join("\n"),
    body: lines
      .slice(end + 1)
      .join("\n")
      .trim(),
  };
}

function textOf(content: Buffer, path: string): string {
  const text = content.toString("utf8");
  if (Buffer.from(text, "utf8").equals(content)) return text;
  throw new ConfigurationInvalid(path, ["is no text, which a skill's files must be: move it elsewhere"]);
}
