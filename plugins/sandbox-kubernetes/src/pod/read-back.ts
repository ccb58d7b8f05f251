import type { V1Pod } from "@kubernetes/client-node";
import { quantityOf } from "./quantities.js";

/** One field that the API server stored in another way than it was asked to. */
export interface FieldDifference {
  /** Such as `spec.containers[sandbox].securityContext.privileged`. */
  readonly field: string;
  readonly asked: string;
  readonly stored: string;
}

type Allowed = (value: unknown) => boolean;

const any: Allowed = () => true;
const only =
  (...values: readonly unknown[]): Allowed =>
  (value) =>
    values.includes(value);

/**
 * What a server adds by itself, by path; `*` is any one step. Whatever else appears was put there by something between
 * this runner and the node: a webhook, another client.
 */
const added: Readonly<Record<string, Allowed>> = {
  "spec.dnsPolicy": only("ClusterFirst"),
  "spec.hostUsers": only(true),
  "spec.nodeName": any,
  "spec.nodeSelector": any,
  "spec.preemptionPolicy": any,
  "spec.priority": any,
  "spec.priorityClassName": any,
  "spec.schedulerName": any,
  "spec.serviceAccount": only("default"),
  "spec.serviceAccountName": only("default"),
  "spec.overhead": any,
  "spec.shareProcessNamespace": only(false),
  "spec.hostNetwork": only(false),
  "spec.hostPID": only(false),
  "spec.hostIPC": only(false),
  "spec.topologySpreadConstraints": any,
  "spec.affinity": any,
  "spec.resourceClaims": (value) => Array.isArray(value) && value.length === 0,
  "spec.containers.*.terminationMessagePolicy": only("File"),
  "spec.initContainers.*.terminationMessagePolicy": only("File"),
  "spec.containers.*.securityContext.privileged": only(false),
  "spec.initContainers.*.securityContext.privileged": only(false),
  "spec.containers.*.securityContext.procMount": only("Default"),
  "spec.initContainers.*.securityContext.procMount": only("Default"),
  "spec.containers.*.volumeMounts.*.recursiveReadOnly": any,
  "spec.volumes.*.downwardAPI.defaultMode": any,
  "spec.volumes.*.downwardAPI.items.*.fieldRef.apiVersion": only("v1"),
};

/**
 * Annotations by which a pod gets further networks (Multus), devices (CDI), or other settings of its runtime. Clusters add many
 * others to every pod, such as its address.
 */
const obeyedAnnotation =
  /^(k8s\.v1\.cni\.cncf\.io\/networks|v1\.multus-cni\.io\/default-network|(container\.apparmor|seccomp)\.security\.(alpha|beta)\.kubernetes\.io\/.*|cdi\.k8s\.io\/.*|io\.(katacontainers|kubernetes\.cri-o|containerd)\..*|dev\.gvisor\..*)$/;

/** A node's pressure, which the server tolerates for every pod of its class; they keep no pod from being ended. */
const addedTolerations = ["node.kubernetes.io/memory-pressure"];

/** Where elements of lists have names, and no order of their own. */
const keys: Readonly<Record<string, string>> = {
  "spec.containers": "name",
  "spec.initContainers": "name",
  "spec.volumes": "name",
  "spec.containers.*.volumeMounts": "mountPath",
  "spec.initContainers.*.volumeMounts": "mountPath",
  "spec.containers.*.env": "name",
  "spec.tolerations": "key",
};

/**
 * Compares a pod as the server stored it with the one that was asked for. Pure.
 *
 * @returns every field that differs or was added, except a server's own defaults.
 */
export function differencesOf(asked: V1Pod, stored: unknown): readonly FieldDifference[] {
  const found: FieldDifference[] = [];
  for (const kind of ["labels", "annotations"] as const) {
    const kept = fieldOf(fieldOf(stored, "metadata"), kind);
    for (const [name, value] of Object.entries(asked.metadata?.[kind] ?? {})) {
      if (fieldOf(kept, name) !== value)
        found.push(difference(`metadata.${kind}.${name}`, value, fieldOf(kept, name)));
    }
  }
  const annotations = fieldOf(fieldOf(stored, "metadata"), "annotations");
  for (const name of isObject(annotations) ? Object.keys(annotations) : []) {
    if (obeyedAnnotation.test(name) && asked.metadata?.annotations?.[name] === undefined)
      found.push(difference(`metadata.annotations.${name}`, undefined, fieldOf(annotations, name)));
  }
  // With it, the cluster deletes the pod of a runner that lives no more.
  const owners = "metadata.ownerReferences";
  compare(
    owners,
    owners,
    asked.metadata?.ownerReferences,
    fieldOf(fieldOf(stored, "metadata"), "ownerReferences"),
    found,
  );
  compare("spec", "spec", asked.spec, fieldOf(stored, "spec"), found);
  return found;
}

/** @param path with `*` for names of elements; @param name as a reader sees it. */
function compare(
  path: string,
  name: string,
  asked: unknown,
  stored: unknown,
  found: FieldDifference[],
): void {
  const key = keys[path];
  const isNoList = asked === undefined && key !== undefined && Array.isArray(stored);
  if (asked === undefined && !isNoList) {
    if (stored !== undefined && added[path]?.(stored) !== true) found.push(difference(name, asked, stored));
    return;
  }
  if (key !== undefined && (Array.isArray(asked) || isNoList)) {
    const own = byKey(Array.isArray(asked) ? asked : [], key);
    const theirs = byKey(Array.isArray(stored) ? stored : [], key);
    for (const one of new Set([...own.keys(), ...theirs.keys()])) {
      if (path === "spec.tolerations" && !own.has(one) && addedTolerations.includes(one)) continue;
      compare(`${path}.*`, `${name}[${one}]`, own.get(one), theirs.get(one), found);
    }
    return;
  }
  if (Array.isArray(asked)) {
    if (Array.isArray(stored) && asked.length === stored.length) {
      for (const [index, one] of asked.entries())
        compare(`${path}.*`, `${name}[${index}]`, one, stored[index], found);
    } else found.push(difference(name, asked, stored));
    return;
  }
  if (isObject(asked)) {
    const own = Object.entries(asked).filter(([, value]) => value !== undefined);
    if (!isObject(stored)) {
      // The server leaves out what is empty.
      if (own.length > 0 || stored !== undefined) found.push(difference(name, asked, stored));
      return;
    }
    for (const field of new Set([...own.map(([one]) => one), ...Object.keys(stored)]))
      compare(`${path}.${field}`, `${name}.${field}`, fieldOf(asked, field), fieldOf(stored, field), found);
    return;
  }
  if (asked === stored || isSameQuantity(asked, stored)) return;
  // The server leaves out empty texts.
  if (asked === "" && stored === undefined) return;
  found.push(difference(name, asked, stored));
}

function byKey(list: readonly unknown[], key: string): ReadonlyMap<string, unknown> {
  const named = new Map<string, unknown>();
  for (const one of list) {
    const name = String(fieldOf(one, key));
    // Two of one name: the second isn't ours.
    named.set(named.has(name) ? `${name} again` : name, one);
  }
  return named;
}

/** `1000m` comes back as `1`. */
function isSameQuantity(asked: unknown, stored: unknown): boolean {
  if (typeof asked !== "string" || typeof stored !== "string") return false;
  const [one, other] = [quantityOf(asked), quantityOf(stored)];
  return one !== undefined && other !== undefined && Math.abs(one - other) < 1e-9;
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) ? new Map<string, unknown>(Object.entries(value)).get(name) : undefined;
}

const maxWords = 120;
const wordsOf = (value: unknown) =>
  value === undefined ? "nothing" : JSON.stringify(value).slice(0, maxWords);

function difference(field: string, asked: unknown, stored: unknown): FieldDifference {
  return { field, asked: wordsOf(asked), stored: wordsOf(stored) };
}
