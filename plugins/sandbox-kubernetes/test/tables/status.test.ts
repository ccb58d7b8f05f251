import { describe, expect, it } from "vitest";
import { podSchema, troubleInEvent, troubleOf } from "../../src/pod/cluster.js";

const pod = (status: object, metadata: object = {}) =>
  podSchema.parse({ metadata: { name: "p", uid: "u", ...metadata }, spec: {}, status });
const waiting = (reason: string, message = "") => ({
  phase: "Pending",
  containerStatuses: [{ name: "sandbox", state: { waiting: { reason, message } } }],
});
const terminated = (reason: string, exitCode: number) => ({
  phase: "Failed",
  containerStatuses: [{ name: "sandbox", state: { terminated: { reason, exitCode } } }],
});

describe("a pod's status", () => {
  it.each([
    { title: "it is new", status: undefined },
    { title: "it is being created", status: waiting("ContainerCreating") },
    {
      title: "it runs",
      status: { phase: "Running", containerStatuses: [{ name: "sandbox", state: { running: {} } }] },
    },
  ])("is fine when $title", ({ status }) => {
    expect(troubleOf(pod(status ?? {}), "image:1")).toBeUndefined();
  });

  it.each([
    { title: "image missing", status: waiting("ErrImageNeverPull"), words: /no node has the image image:1/ },
    {
      title: "image unknown",
      status: waiting("ImagePullBackOff", "not found"),
      words: /can't be pulled: not found/,
    },
    { title: "image's name", status: waiting("InvalidImageName"), words: /is no name of an image/ },
    {
      title: "configuration",
      status: waiting("CreateContainerConfigError", "no secret"),
      words: /no secret/,
    },
    {
      title: "memory",
      status: terminated("OOMKilled", 137),
      words: /more memory than its limit/,
      concerns: "session",
    },
    { title: "end", status: terminated("Completed", 0), words: /first process ended with exit code 0/ },
    {
      title: "eviction",
      status: { phase: "Failed", reason: "Evicted", message: "low on memory" },
      words: /evicted the pod: low/,
    },
    {
      title: "deadline",
      status: { phase: "Failed", reason: "DeadlineExceeded" },
      words: /reached its deadline/,
      concerns: "session",
    },
    { title: "node lost", status: { phase: "Failed", reason: "NodeLost" }, words: /node was lost/ },
    {
      title: "drain",
      status: {
        phase: "Running",
        conditions: [
          { type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI", message: "drain" },
        ],
      },
      words: /the cluster ends the pod \(EvictionByEvictionAPI\): drain/,
    },
  ])("names what ends it: $title", ({ status, words, concerns = "host" }) => {
    const trouble = troubleOf(pod(status), "image:1");
    expect(trouble).toMatchObject({ reason: expect.stringMatching(words), concerns, mayPass: false });
    expect(trouble?.fix).not.toBe("");
  });

  it.each([
    {
      title: "no node takes it, in the scheduler's words",
      status: {
        phase: "Pending",
        conditions: [
          {
            type: "PodScheduled",
            status: "False",
            reason: "Unschedulable",
            message: "0/3 nodes are available",
          },
        ],
      },
      words: /0\/3 nodes are available/,
    },
    { title: "its image can't be pulled yet", status: waiting("ErrImagePull", "timeout"), words: /timeout/ },
  ])("may pass when $title", ({ status, words }) => {
    expect(troubleOf(pod(status), "i")).toMatchObject({
      reason: expect.stringMatching(words),
      mayPass: true,
    });
  });

  it("names somebody else's deletion", () => {
    const found = troubleOf(pod({ phase: "Running" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }), "i");
    expect(found?.reason).toMatch(/somebody deletes the pod/);
  });
});

describe("a node's events", () => {
  it.each([
    {
      reason: "FailedCreatePodSandBox",
      message: "runtime does not support user namespaces",
      found: { mayPass: false, fix: expect.stringContaining("containerd 2.0") },
    },
    {
      reason: "FailedCreatePodSandBox",
      message: 'error mounting "proc" to rootfs at "/proc": operation not permitted',
      found: { mayPass: false, reason: expect.stringMatching(/user namespaces/) },
    },
    { reason: "FailedCreatePodSandBox", message: "no network", found: { mayPass: true } },
    { reason: "Pulled", message: "user namespaces", found: undefined },
  ])("$reason: $message", ({ reason, message, found }) => {
    const seen = troubleInEvent(reason, message);
    if (found === undefined) expect(seen).toBeUndefined();
    else expect(seen).toMatchObject(found);
  });
});
