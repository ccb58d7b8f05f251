import { createHash, randomInt } from "node:crypto";
import type { LayerUse } from "@ambit/core/plugin";

/** User ids that systemd's conventions leave unassigned: no user of the host has one. */
const users = { first: 0x7000_0000, last: 0x7fff_ffff };
/** Of one sandbox: more than its guest daemon gives to processes. */
const usersOfOne = 4_096;
const places = Math.floor((users.last - users.first) / usersOfOne);

/**
 * The first user id of one sandbox's processes. The kernel counts what a user has of inotify, pipes' memory and the like over all
 * containers: the same ids could take it from each other. Those of one layer, which is one project's, are the same, as its files'.
 */
export function ownFirstUser(layer: Pick<LayerUse, "name"> | undefined): number {
  const place =
    layer === undefined
      ? randomInt(places)
      : createHash("sha256").update(layer.name).digest().readUInt32BE() % places;
  return users.first + place * usersOfOne;
}
