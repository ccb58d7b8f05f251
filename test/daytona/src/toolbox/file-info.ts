import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import type { FileInfo } from "@daytona/toolbox-api-client";

/** `drwxr-xr-x`, as Go prints a mode. */
function modeText(info: Stats): string {
  const bits = [...(info.mode & 0o777).toString(2).padStart(9, "0")];
  return (
    (info.isDirectory() ? "d" : "-") +
    bits.map((bit, index) => (bit === "1" ? "rwx"[index % 3] : "-")).join("")
  );
}

/** Follows links. Owner and group are numbers as text. */
export async function fileInfo(path: string): Promise<FileInfo> {
  const info = await stat(path);
  return {
    name: basename(path),
    size: info.size,
    mode: modeText(info),
    modTime: info.mtime.toISOString().replace("T", " ").replace("Z", " +0000 UTC"),
    modifiedAt: info.mtime.toISOString(),
    isDir: info.isDirectory(),
    owner: String(info.uid),
    group: String(info.gid),
    permissions: (info.mode & 0o777).toString(8).padStart(4, "0"),
  };
}
