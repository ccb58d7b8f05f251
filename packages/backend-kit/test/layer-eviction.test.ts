import { describe, expect, it } from "vitest";
import { layersToRemove } from "../src/lifetime/layer-eviction.js";

describe("of the layers that a platform keeps", () => {
  const layers = [3, 1, 2].map((createdAt) => ({ name: `of ${createdAt}`, createdAt }));
  it.for([
    ["none too old, and no more than may be", { max: 3, before: 1 }, []],
    ["the oldest of too many", { max: 1, before: 0 }, ["of 2", "of 1"]],
    ["those that are too old", { max: 3, before: 3 }, ["of 2", "of 1"]],
    ["all where none may be kept", { max: 0, before: 0 }, ["of 3", "of 2", "of 1"]],
  ] as const)("removes %s", ([, limits, removed]) => {
    expect(layersToRemove(layers, limits)).toEqual(removed);
  });
});
