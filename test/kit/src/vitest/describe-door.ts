import type { Door } from "@ambit/core/plugin";
import { describe, it } from "vitest";
import { doorChecks } from "../door/checks.js";
import type { DoorClient } from "../door/door-client.js";

/**
 * The requirements on a door over HTTP, as a suite: without a server, with an API that follows a script.
 *
 * @param makeDoor makes the door, anew for each test.
 * @param client how a client of its protocol speaks.
 */
export function describeDoor(makeDoor: () => Door, client: DoorClient): void {
  describe(`door ${makeDoor().name}`, () => {
    for (const { title, isFor, check } of doorChecks)
      if (isFor?.(client) ?? true) it(title, () => check(makeDoor(), client));
  });
}
