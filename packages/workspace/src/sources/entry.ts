import { workspaceFileSchema } from "@ambit/core/contract";

/** A file of a source. */
export interface SourceEntry {
  /** Relative to the source's folder; checked. */
  readonly path: string;
  readonly content: Uint8Array;
  readonly executable: boolean;
}

/** What can't be put into a workspace. */
export interface LeftOut {
  readonly leftOut: string;
  readonly reason: "link" | "special" | "name";
}

/** Characters of a name that is left out. */
export const maxNameLength = 4_096;

/** Undefined for a name that would lead out of the workspace, or that files may not have there. */
export function pathOf(name: string): string | undefined {
  const path = name.replace(/^(\.\/)+/, "");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  const isPlain = !/[\u0000-\u001f\u007f]/.test(path);
  return isPlain && workspaceFileSchema.safeParse(path).success ? path : undefined;
}
