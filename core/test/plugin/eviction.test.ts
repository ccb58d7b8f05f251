import { describe, expect, it } from "vitest";
import { entriesToRemove } from "../../src/plugin/eviction.js";

describe("of entries that only count", () => {
  const entries = [3, 1, 2].map((usedAt) => ({ name: `of ${usedAt}`, usedAt, project: "" }));
  it.for([
    ["none too old, and no more than may be", { max: 3, before: 1 }, []],
    ["the oldest of too many", { max: 1, before: 0 }, ["of 1", "of 2"]],
    ["those that are too old", { max: 3, before: 3 }, ["of 1", "of 2"]],
    ["all where none may be kept", { max: 0, before: 0 }, ["of 1", "of 2", "of 3"]],
  ] as const)("removes %s", ([, limits, removed]) => {
    expect(entriesToRemove(entries, limits)).toEqual(removed);
  });

  it.for([
    ["its own oldest, not another project's", ["a", "b", "b", "b"], ["b 2"]],
    ["the oldest of all, where each has one", ["a", "b", "c", "d"], ["a 1"]],
    ["the oldest of all, where both have as many", ["a", "a", "b", "b"], ["a 1"]],
    ["several of its own", ["b", "a", "a", "a", "a", "a"], ["a 2", "a 3", "a 4"]],
  ] as const)("removes of a project with too many %s", ([, projects, removed]) => {
    const made = projects.map((project, at) => ({ name: `${project} ${at + 1}`, usedAt: at + 1, project }));
    expect(entriesToRemove(made, { max: 3, before: 0 })).toEqual(removed);
  });
});

describe("of entries with a size", () => {
  const entries = [
    { project: "a", name: "a1", bytes: 5, usedAt: 1 },
    { project: "a", name: "a2", bytes: 5, usedAt: 9 },
    { project: "b", name: "b1", bytes: 3, usedAt: 2 },
    { project: "b", name: "b2", bytes: 3, usedAt: 8 },
  ];
  it.for<[string, readonly string[], number, number, number?]>([
    ["nothing within the limits", [], 4, 16],
    ["what wasn't used for too long", ["a1", "b1"], 4, 16, 5],
    ["the oldest of the project with the most bytes", ["a1"], 3, 16],
    ["of another project once that has most", ["a1", "b1"], 2, 16],
    ["as much as there are bytes too many", ["a1"], 4, 11],
    ["all but the newest", ["a1", "b1", "a2"], 1, 1],
    ["all but the newest, however old that is", ["a1", "b1", "a2"], 4, 16, 10],
  ])("removes %s", ([, removed, max, maxBytes, before = 0]) => {
    expect(entriesToRemove(entries, { max, maxBytes, before, newest: "b2" })).toEqual(removed);
  });
});
