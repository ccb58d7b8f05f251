import type { Boundary } from "@ambit/core/plugin";
import { z } from "zod";
import { inside } from "../confined/arguments.js";
import { revealingProcEntries } from "../confined/jail-setup.js";
import type { ConfinedSandbox } from "../confined/session.js";
import {
  closedBoundary,
  emptyBoundary,
  expectThat,
  type LocalTrial,
  NotProven,
  nodeInside,
  readOnlyBoundary,
  runIn,
} from "./trial.js";

/**
 * Reports of every mount whether it can be written, by setting the mode that it already has: a read-only mount answers
 * EROFS before any permission is checked, and nothing changes on others. A mode with set-id bits is refused by the filter
 * of system calls, so there the owner is left as it is. Sockets and devices are skipped.
 */
const look = `
const fs = require("node:fs"), os = require("node:os");
const points = fs.readFileSync("/proc/self/mountinfo", "utf8").trim().split("\\n").map((line) => line.split(" ")[4]);
const mounts = [...new Set(points)].flatMap((path) => {
  const found = fs.statSync(path, { throwIfNoEntry: false });
  if (found === undefined || found.isSocket() || (found.isCharacterDevice() && path.startsWith("/dev/"))) return [];
  let answer = "writable";
  const hasSetIdBits = (found.mode & 0o6000) !== 0;
  try {
    if (hasSetIdBits) fs.chownSync(path, -1, -1);
    else fs.chmodSync(path, found.mode & 0o7777);
  } catch (error) { answer = error.code; }
  const { type, blocks, bsize } = fs.statfsSync(path);
  return [{ path, answer, memory: type === 0x01021994 ? blocks * bsize : 0 }];
});
const covered = JSON.parse(process.argv[1]).filter((path) => {
  const found = fs.statSync(path, { throwIfNoEntry: false });
  return found !== undefined && found.rdev !== fs.statSync("/dev/null").rdev;
});
const own = fs.readFileSync("/proc/self/stat", "latin1").replace(/^.*\\) /, "").split(" ");
console.log(JSON.stringify({
  mounts, uncovered: covered, hostname: os.hostname(), uid: process.getuid(), gid: process.getgid(),
  session: Number(own[3]), groups: fs.readFileSync("/proc/self/cgroup", "utf8").trim().split("\\n"),
}));`;

const viewSchema = z.object({
  mounts: z.array(z.object({ path: z.string(), answer: z.string(), memory: z.number() })),
  uncovered: z.array(z.string()),
  hostname: z.string(),
  uid: z.number(),
  gid: z.number(),
  session: z.number(),
  groups: z.array(z.string()),
});
export type View = z.output<typeof viewSchema>;

/** What a process of the sandbox sees. */
export async function viewOf(sandbox: ConfinedSandbox, role: "agent" | "tool"): Promise<View> {
  const { stdout } = await runIn(sandbox, [...nodeInside, "-e", look, JSON.stringify(revealingProcEntries)], {
    role,
  });
  return viewSchema.parse(JSON.parse(stdout));
}

/** What a process may write to; `/proc` has separate rules, which other trials test. */
const writable = [
  inside.workspace,
  inside.toolHome,
  inside.agentHome,
  inside.scratch,
  "/dev/shm",
  "/dev/pts",
  "/proc",
];
/** Memory of the host's until the process ends. */
const scratch: readonly string[] = [inside.toolHome, inside.scratch, "/dev/shm"];
const isScratch = (path: string, hasWorkspace: boolean) =>
  scratch.includes(path) || (path === inside.workspace && !hasWorkspace);
/** A mount below scratch comes from the host: Node, if it is in the host's `/tmp`. */
const mayWrite = (path: string) =>
  writable.some((top) => path === top || (!scratch.includes(top) && path.startsWith(`${top}/`)));

/** @param scratchBytes what a scratch file system may hold. */
export function viewTrial(scratchBytes: number): LocalTrial {
  return {
    shows: [
      "filesystem.read-only",
      "filesystem.workspace-only",
      "filesystem.none",
      "filesystem.host-hidden",
      "process.contained",
    ],
    run: async (bench) => {
      const views = await Promise.all(
        places.map(async ({ boundary, role }) => viewOf(await bench.shared(boundary), role)),
      );
      expectThat(
        views[0]?.mounts.some(({ path, answer }) => path === inside.workspace && answer === "writable") ??
          false,
        "the workspace couldn't be written either, so nothing is proven",
      );
      const judged = (judge: (view: View, index: number) => string | NotProven) => {
        const said = views.map(judge);
        return said.find((one) => one instanceof NotProven) ?? said[0] ?? new NotProven("nothing was seen");
      };
      const hasWorkspace = (index: number) => places[index]?.boundary.filesystem?.mode !== "off";
      const mounts = judged((view, index) => mountsOf(view, scratchBytes, hasWorkspace(index)));
      return {
        "filesystem.read-only": mounts,
        "filesystem.workspace-only": mounts,
        "filesystem.none": mounts,
        "filesystem.host-hidden": judged(hostOf),
        "process.contained": judged(sessionOf),
      };
    },
  };
}

/** Each shows something that the others don't: an agent's home, the host's network, a missing workspace. */
const places: readonly { readonly boundary: Partial<Boundary>; readonly role: "agent" | "tool" }[] = [
  { role: "tool", boundary: closedBoundary },
  { role: "agent", boundary: readOnlyBoundary },
  { role: "tool", boundary: emptyBoundary },
];

/** Judges which mounts can be written, and how much they can hold. Pure. */
export function mountsOf({ mounts }: View, scratchBytes: number, hasWorkspace: boolean): string | NotProven {
  const shown = mounts.filter(({ path }) => !mayWrite(path));
  const wrong = [
    ...shown.filter(({ answer }) => answer !== "EROFS").map(({ path }) => `${path} isn't mounted read-only`),
    ...mounts
      .filter(({ path, memory }) => isScratch(path, hasWorkspace) && memory > scratchBytes)
      .map(({ path }) => `${path} can hold more than scratch may`),
  ];
  return wrong.length > 0
    ? new NotProven(wrong.join("; "))
    : `each of ${shown.length} other mounts refused a change as read-only`;
}

function hostOf({ uncovered, hostname, uid, gid, groups }: View): string | NotProven {
  const wrong = [
    ...uncovered.map((path) => `${path} can be read`),
    ...(hostname === inside.hostName ? [] : [`the host's name is seen (${hostname})`]),
    ...(uid === inside.uid && gid === inside.uid
      ? []
      : [`the host's number of its user is seen (${uid}/${gid})`]),
    ...groups
      .filter((line) => !line.endsWith(":/"))
      .map((line) => `a control group of the host's is seen: ${line}`),
  ];
  return wrong.length > 0
    ? new NotProven(wrong.join("; "))
    : "the host's name, control groups, user numbers and kernel tables weren't seen";
}

function sessionOf({ session }: View): string | NotProven {
  return session > 0
    ? "its terminal session is its own"
    : new NotProven("it shares a terminal session with the host's processes");
}
