import { describe, expect, it } from "vitest";
import { layersToRemove } from "../src/lifetime/layer-eviction.js";

describe("of the layers that a platform keeps", () => {
  const layers = [3, 1, 2].map((createdAt) => ({ name: `of ${createdAt}`, createdAt, project: "" }));
  it.for([
    ["none too old, and no more than may be", { max: 3, before: 1 }, []],
    ["the oldest of too many", { max: 1, before: 0 }, ["of 1", "of 2"]],
    ["those that are too old", { max: 3, before: 3 }, ["of 1", "of 2"]],
    ["all where none may be kept", { max: 0, before: 0 }, ["of 1", "of 2", "of 3"]],
  ] as const)("removes %s", ([, limits, removed]) => {
    expect(layersToRemove(layers, limits)).toEqual(removed);
  });

  it.for([
    ["its own oldest, not another project's", ["a", "b", "b", "b"], ["b 2"]],
    ["the oldest of all, where each has one", ["a", "b", "c", "d"], ["a 1"]],
    ["the oldest of all, where both have as many", ["a", "a", "b", "b"], ["a 1"]],
    ["several of its own", ["b", "a", "a", "a", "a", "a"], ["a 2", "a 3", "a 4"]],
  ] as const)("removes of a project with too many %s", ([, projects, removed]) => {
    const made = projects.map((project, at) => ({
      name: `${project} ${at + 1}`,
      createdAt: at + 1,
      project,
    }));
    expect(layersToRemove(made, { max: 3, before: 0 })).toEqual(removed);
  });
});
