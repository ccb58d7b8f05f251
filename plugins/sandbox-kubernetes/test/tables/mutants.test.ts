import { probeSpec } from "@ambit/backend-kit";
import type { V1Pod } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import { differencesOf } from "../../src/pod/pod-machine.js";
import { podOf } from "../support/manifests.js";

type Path = readonly (string | number)[];

const secrets = [{ name: "KEY", value: "a value of its own", hosts: ["a.test"] }];
const settings = {
  runtimeClass: "gvisor",
  nodeSelector: { pool: "sandboxes" },
  pullSecrets: ["registry"],
  tolerations: [{ key: "sandboxes", operator: "Equal", value: "yes", effect: "NoSchedule" }] as const,
};

/** Together they have every line that a specification may have. */
const pods: readonly { readonly title: string; readonly pod: V1Pod }[] = [
  { title: "user-namespace", pod: podOf() },
  { title: "baseline", pod: podOf({}, probeSpec({ network: { mode: "off", rules: [] } }), "baseline") },
  { title: "with a network", pod: podOf({}, probeSpec({})) },
  ...(["user-namespace", "baseline"] as const).map((podShape) => ({
    title: `${podShape}, with limits, credentials and every setting`,
    pod: podOf(
      { ...settings, tolerations: [...settings.tolerations] },
      probeSpec({ resources: { memoryMb: 1024, cpus: 0.5, diskMb: 16 } }, { secrets }),
      podShape,
    ),
  })),
];

const entriesOf = (value: object): [string | number, unknown][] =>
  Array.isArray(value) ? value.map((one, index) => [index, one]) : Object.entries(value);

/** Every line of a specification: values, elements of lists, and the objects that hold them. */
function* pathsIn(value: unknown, at: Path = []): Generator<Path> {
  if (typeof value !== "object" || value === null) return;
  for (const [name, one] of entriesOf(value)) {
    if (one === undefined) continue;
    yield [...at, name];
    yield* pathsIn(one, [...at, name]);
  }
}

/** A copy in which one line has another value, or none. */
function changed(value: unknown, [name, ...rest]: Path, change: (old: unknown) => unknown): unknown {
  if (name === undefined) return change(value);
  if (typeof value !== "object" || value === null) throw new Error(`nothing at ${name}`);
  const entries = entriesOf(value).flatMap(([key, one]) => {
    const next = key === name ? changed(one, rest, change) : one;
    return next === undefined ? [] : [[key, next] as const];
  });
  return Array.isArray(value) ? entries.map(([, one]) => one) : Object.fromEntries(entries);
}

function other(value: unknown): unknown {
  if (typeof value === "boolean") return !value;
  if (typeof value === "number") return value + 1;
  if (typeof value === "string") return `${value}-other`;
  return undefined;
}

/** Nothing depends on it: the server leaves an empty text out by itself. */
const isEmptyText = (value: unknown) => value === "";

function valueAt(value: unknown, path: Path): unknown {
  let found = value;
  for (const name of path)
    found =
      typeof found === "object" && found !== null
        ? entriesOf(found).find(([key]) => key === name)?.[1]
        : undefined;
  return found;
}

/** An object or list without content can be left out. */
const isHollow = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.values(value).every(isHollow);

const nameOf = (path: Path) => path.join(".");

describe.each(pods)("the specification of a pod, $title", ({ pod }) => {
  const lines = [...pathsIn(pod.spec)];

  it("is refused by each line that the cluster takes out", () => {
    expect(lines.length).toBeGreaterThan(50);
    const unnoticed = lines.filter((path) => {
      const value = valueAt(pod.spec, path);
      if (isEmptyText(value) || isHollow(value)) return false;
      const stored = { ...pod, spec: changed(pod.spec, path, () => undefined) };
      return differencesOf(pod, stored).length === 0;
    });
    expect(unnoticed.map(nameOf)).toEqual([]);
  });

  it("is refused by each value that the cluster changes", () => {
    const unnoticed = lines.filter((path) => {
      if (other(valueAt(pod.spec, path)) === undefined) return false;
      const stored = { ...pod, spec: changed(pod.spec, path, other) };
      return differencesOf(pod, stored).length === 0;
    });
    expect(unnoticed.map(nameOf)).toEqual([]);
  });

  it("is refused by each field that the cluster adds to one of its objects", () => {
    const objects: Path[] = [[], ...lines].filter((path) => {
      const value = valueAt(pod.spec, path);
      return typeof value === "object" && value !== null && !Array.isArray(value);
    });
    const add = (value: unknown) => ({ ...Object(value), somethingElse: true });
    const unnoticed = objects.filter(
      (path) => differencesOf(pod, { ...pod, spec: changed(pod.spec, path, add) }).length === 0,
    );
    expect(unnoticed.map(nameOf)).toEqual([]);
  });

  it("is refused by each element that the cluster adds to a list, or repeats in it", () => {
    const lists = lines.filter((path) => Array.isArray(valueAt(pod.spec, path)));
    const grown = (value: unknown) => (Array.isArray(value) ? [...value, value[0]] : value);
    const unnoticed = lists.filter(
      (path) => differencesOf(pod, { ...pod, spec: changed(pod.spec, path, grown) }).length === 0,
    );
    expect(unnoticed.map(nameOf)).toEqual([]);
  });

  it("is refused by each label and annotation that the cluster takes out or changes", () => {
    for (const kind of ["labels", "annotations"] as const) {
      const given = pod.metadata?.[kind] ?? {};
      expect(Object.keys(given).length).toBeGreaterThan(1);
      for (const name of Object.keys(given)) {
        for (const change of [() => undefined, other]) {
          const metadata = { ...pod.metadata, [kind]: changed(given, [name], change) };
          expect(
            differencesOf(pod, { ...pod, metadata }).map(({ field }) => field),
            name,
          ).toEqual([`metadata.${kind}.${name}`]);
        }
      }
    }
  });
});
