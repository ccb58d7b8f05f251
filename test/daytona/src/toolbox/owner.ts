import { chown, readFile, stat } from "node:fs/promises";
import { badRequest } from "../http/api-error.js";

/** The id of a user or group, given as a name or a number. */
async function numberOf(name: string, table: "/etc/passwd" | "/etc/group", kind: string): Promise<number> {
  if (/^\d+$/.test(name)) return Number(name);
  const lines = (await readFile(table, "utf8")).split("\n");
  const number = lines.find((line) => line.startsWith(`${name}:`))?.split(":")[2];
  if (number === undefined) throw badRequest(`${kind} not found`);
  return Number(number);
}

/** An empty name changes nothing. */
export async function changeOwner(path: string, owner: string, group: string): Promise<void> {
  if (owner === "" && group === "") return;
  const now = await stat(path);
  const uid = owner === "" ? now.uid : await numberOf(owner, "/etc/passwd", "user");
  const gid = group === "" ? now.gid : await numberOf(group, "/etc/group", "group");
  await chown(path, uid, gid);
}
