import { chown, readFile, stat } from "node:fs/promises";
import { badRequest } from "../http/api-error.js";

/** The number of a user or group, which may be given as one. */
async function numberOf(name: string, table: "/etc/passwd" | "/etc/group", kind: string): Promise<number> {
  if (/^\d+$/.test(name)) return Number(name);
  const lines = (await readFile(table, "utf8")).split("\n");
  const number = lines.find((line) => line.startsWith(`${name}:`))?.split(":")[2];
  if (number === undefined) throw badRequest(`${kind} not found`);
  return Number(number);
}

/** An empty name leaves that side as it is. */
export async function changeOwner(path: string, owner: string, group: string): Promise<void> {
  if (owner === "" && group === "") return;
  const now = await stat(path);
  const uid = owner === "" ? now.uid : await numberOf(owner, "/etc/passwd", "user");
  const gid = group === "" ? now.gid : await numberOf(group, "/etc/group", "group");
  await chown(path, uid, gid);
}
