import { onDisconnectOf } from "@ambit/core/contract";
import { says } from "@ambit/fakes/harness";
import { expect, test } from "vitest";
import { createWorld } from "../fakes/world.js";

const named = { sessionId: "one" };

test.each([
  ["a session", named, "continue"],
  ["`onDisconnect`", { onDisconnect: "continue" }, "continue"],
  ["an explicit null", { ...named, onDisconnect: null }, "continue"],
  ["no session", {}, "cancel"],
  ["a session, and the wish to end", { ...named, onDisconnect: "cancel" }, "cancel"],
  ["a blank session", { sessionId: " " }, "cancel"],
])("a run with %s has its rule for a caller that disconnects", async (_what, body, expected) => {
  await using world = await createWorld({ script: says("ok") });
  const run = await world.admit(body);
  expect(onDisconnectOf(run.request)).toBe(expected);
});
