import { describe, expect, test } from "vitest";
import {
  type Expected,
  type JailInfo,
  judge,
  type Namespaces,
  type ProcessStatus,
  parseStatus,
} from "../../../src/confined/evidence.js";

const runner: Namespaces = { ipc: 1, mnt: 2, net: 3, pid: 4, uts: 5 };
const info: JailInfo = {
  "child-pid": 100,
  "ipc-namespace": 11,
  "mnt-namespace": 12,
  "net-namespace": 13,
  "pid-namespace": 14,
  "uts-namespace": 15,
};
const status: ProcessStatus = {
  uids: [64_001, 64_001, 64_001, 64_001],
  numbers: [101, 2],
  parent: 100,
  capabilities: "0",
  noNewPrivileges: 1,
  seccomp: 2,
};
const expected: Expected = { uid: 64_001, shared: [], seccomp: 2 };
const refuse = (difference: Error) => {
  throw difference;
};

test("a jail that matches the plan yields the evidence", () => {
  expect(judge(info, status, runner, expected, refuse)).toEqual({
    confinement: "confined",
    uid: 64_001,
    capabilities: "none",
    noNewPrivileges: true,
    seccomp: 2,
    mntNamespace: 12,
    pidNamespace: 14,
    ipcNamespace: 11,
    utsNamespace: 15,
    netNamespace: 13,
  });
});

describe("a difference fails the jail", () => {
  test.each<[string, Partial<JailInfo>, Partial<ProcessStatus>, Partial<Expected>, RegExp]>([
    ["the runner's mounts", { "mnt-namespace": 2 }, {}, {}, /mnt namespace is the runner's/],
    ["the runner's processes", { "pid-namespace": 4 }, {}, {}, /pid namespace is the runner's/],
    ["the runner's network", { "net-namespace": 3 }, {}, {}, /net namespace is the runner's/],
    [
      "no information on the network",
      { "net-namespace": undefined },
      {},
      {},
      /net namespace is the runner's/,
    ],
    ["another user", {}, { uids: [1000, 1000, 1000, 1000] }, {}, /user is 1000/],
    ["a saved user of root's", {}, { uids: [64_001, 64_001, 0, 64_001] }, {}, /user is 64001\/64001\/0/],
    ["no users at all", {}, { uids: [] }, {}, /user is/],
    ["root as planned", {}, { uids: [0, 0, 0, 0] }, { uid: 0 }, /user is root/],
    ["a capability", {}, { capabilities: "0000000000200000" }, {}, /capabilities/],
    ["may gain privileges", {}, { noNewPrivileges: 0 }, {}, /gain privileges/],
    ["no filter", {}, { seccomp: 0 }, {}, /seccomp mode is 0/],
  ])("%s", (_name, otherInfo, otherStatus, otherPlan, message) => {
    const act = () =>
      judge(
        { ...info, ...otherInfo },
        { ...status, ...otherStatus },
        runner,
        { ...expected, ...otherPlan },
        refuse,
      );
    expect(act).toThrow(message);
  });

  test("except for a network that the run shares", () => {
    const shared = judge(
      { ...info, "net-namespace": 3 },
      status,
      runner,
      { ...expected, shared: ["net"] },
      refuse,
    );
    expect(shared).not.toHaveProperty("netNamespace");
  });
});

test("a process status is parsed by row", () => {
  const text = [
    "Name:\tsh\nUmask:\t0022\nState:\tS (sleeping)\nPPid:\t100\nUid:\t64001\t64001\t64001\t64001",
    "NSpid:\t101\t2\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000",
    "CapBnd:\t0000000000200000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n",
  ].join("\n");
  expect(parseStatus(text)).toEqual({ ...status, capabilities: "0000000000200000" });
});
