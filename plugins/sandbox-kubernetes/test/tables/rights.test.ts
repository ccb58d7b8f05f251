import { readFileSync } from "node:fs";
import { loadYaml } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { reviewRights } from "../../src/rights.js";

const rule = (resources: string[], verbs: string[], apiGroups = [""]) => ({
  resources,
  verbs,
  apiGroups,
  resourceNames: [],
});
const rulesSchema = z.array(
  z.object({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()) }),
);
const file = new URL("../../../../deploy/chart/files/rights.yaml", import.meta.url);
const rulesIn = (path: URL) =>
  rulesSchema.parse(loadYaml(readFileSync(path, "utf8"))).map((one) => ({ ...one, resourceNames: [] }));
const own = rulesIn(file);
const ofGates = rulesIn(new URL("gate-rights.yaml", file));

describe("a runner's rights", () => {
  it("are exactly enough with the role of the chart", () => {
    expect(reviewRights(own, "bridge")).toStrictEqual({ missing: [], tooMany: [] });
  });

  it("are exactly enough for gates with one rule more, which is too much without gates", () => {
    expect(reviewRights([...own, ...ofGates], "gate")).toStrictEqual({ missing: [], tooMany: [] });
    expect(reviewRights(own, "gate").missing).toStrictEqual(["networkpolicies: create, delete"]);
    expect(reviewRights([...own, ...ofGates], "bridge").tooMany).toStrictEqual([
      "networkpolicies: create, delete",
    ]);
    const more = [...own, ...ofGates, rule(["networkpolicies"], ["update"], ["networking.k8s.io"])];
    expect(reviewRights(more, "gate").tooMany).toStrictEqual(["networkpolicies: update"]);
  });

  it("are named where any of them is missing", () => {
    for (const [index, { resources }] of own.entries()) {
      const { missing } = reviewRights(
        own.filter((_, other) => other !== index),
        "bridge",
      );
      expect(missing.map((words) => words.split(":")[0])).toStrictEqual(resources);
    }
    expect(reviewRights([rule(["pods"], ["create"])], "bridge").missing).toContain(
      "pods: get, delete, list, watch",
    );
  });

  it.each([
    { title: "everything", rules: [rule(["*"], ["*"], ["*"])], tooMany: ["everything"] },
    { title: "secrets", rules: [...own, rule(["secrets"], ["get"])], tooMany: ["secrets: get"] },
    {
      title: "every node's pods",
      rules: [...own, rule(["nodes/proxy"], ["get"])],
      tooMany: ["nodes/proxy: get"],
    },
    {
      title: "policies",
      rules: [...own, rule(["networkpolicies"], ["*"], ["networking.k8s.io"])],
      tooMany: ["networkpolicies: create, update, patch, delete"],
    },
  ])("are too many with $title", ({ rules, tooMany }) => {
    expect(reviewRights(rules, "bridge")).toStrictEqual({ missing: [], tooMany });
  });

  it("don't count where they name single objects", () => {
    const { tooMany } = reviewRights(
      [...own, { ...rule(["secrets"], ["get"]), resourceNames: ["one"] }],
      "bridge",
    );
    expect(tooMany).toStrictEqual([]);
  });
});
