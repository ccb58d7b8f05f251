/** One mount as a process sees it. */
export interface Mount {
  /** Major and minor number of the file system. */
  readonly device: string;
  /** The folder or file of that file system which is mounted. */
  readonly root: string;
  readonly path: string;
  readonly isReadOnly: boolean;
}

/** Reads the text of a process's `mountinfo` in `/proc`, in latin1: paths are bytes. A later mount of a path covers earlier ones. */
export function parseMounts(text: string): readonly Mount[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [, , device = "", root = "", path = "", options = ""] = line.split(" ");
      const isReadOnly = options.split(",").includes("ro");
      return { device, root: decoded(root), path: decoded(path), isReadOnly };
    });
}

/** The kernel writes blanks and backslashes in paths as octal numbers. */
function decoded(path: string): string {
  const bytes = path.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
  return Buffer.from(bytes, "latin1").toString();
}
