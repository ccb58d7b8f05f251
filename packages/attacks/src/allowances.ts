import type { Capability } from "@ambit/core/plugin";
import {
  type Allowance,
  blocked,
  type NonEmptyArray,
  notRun,
  reached,
  type Stage,
} from "./attacks/attack.js";
import { tryPort, withServer } from "./attacks/inbound-ports.js";
import { outcomeOf, type ProgramAttack, programAttack } from "./attacks/program-attack.js";
import { askProgram, credentialParameters, headerOf } from "./attacks/secrets-hidden.js";
import { proxyProgram } from "./programs/proxy-program.js";
import { commandOf, runProgram, waitForLine } from "./programs/run-program.js";
import { smallLimits } from "./stage/boundaries.js";

/** Something that must still work inside, run in the same way as an attack. */
function programAllowance(allowance: Omit<ProgramAttack, "needs">): Allowance {
  return programAttack(allowance);
}

const listedServer = `${proxyProgram}
def judge(data):
    return b"ambit-listed-server" in data and "the listed server answered"
attempt_all([P["host"].encode()], P["port"], judge)`;

const networkAllowances = {
  "network.deny": [
    {
      id: "network.deny/own-channel",
      capability: "network.deny",
      title: "the run's own channel works",
      perform: async ({ sandbox }: Stage) => {
        const exposure = await sandbox.expose(() => new Response("the runner answered"));
        try {
          const { url, token } = exposure;
          return outcomeOf(await runProgram(sandbox, askChannel, { url, token }));
        } finally {
          await exposure.close();
        }
      },
    } satisfies Allowance,
  ],
  "network.allow-cidr": [
    programAllowance({
      id: "network.allow-cidr/listed",
      title: "the listed address can be reached",
      parameters: ({ decoys }) => decoys.listed,
      program: listedServer,
    }),
  ],
  "network.allow-host": [
    programAllowance({
      id: "network.allow-host/listed",
      title: "the listed name can be reached",
      parameters: ({ decoys, spec }) =>
        spec.required.includes("network.allow-cidr")
          ? { host: decoys.place.listedName, port: decoys.listed.port }
          : "no name outside loopback to list, and no other host is sent traffic",
      program: listedServer,
    }),
  ],
} as const;

const askChannel = `
import urllib.request
def ask():
    request = urllib.request.Request(P["url"] + "/", headers={"Authorization": "Bearer " + P["token"]})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as response:
        return response.read().decode()
attempt("ask", ask)
`;

const scratch = `
def scratch():
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "scratch-" + P["nonce"])
    with open(path, "w") as file:
        file.write("mine")
    return content(path) == b"mine" and "written and read"
attempt("scratch", scratch)`;

const filesystemAllowances = {
  "filesystem.read-only": [
    programAllowance({
      id: "filesystem.read-only/scratch",
      title: "scratch can be written",
      program: scratch,
    }),
    {
      id: "filesystem.read-only/read",
      capability: "filesystem.read-only",
      title: "the workspace can be read",
      perform: async ({ sandbox }: Stage) => {
        const path = `${sandbox.workspace}/to-be-read.txt`;
        await sandbox.writeFiles([{ path, content: "for the run" }]);
        return outcomeOf(
          await runProgram(sandbox, `attempt("open", lambda: content(P["path"]).decode())`, { path }),
        );
      },
    } satisfies Allowance,
  ],
  "filesystem.workspace-only": [
    programAllowance({
      id: "filesystem.workspace-only/scratch",
      title: "scratch can be written",
      program: scratch,
    }),
    {
      id: "filesystem.workspace-only/write",
      capability: "filesystem.workspace-only",
      title: "the workspace can be written, and the runner reads it",
      perform: async ({ sandbox }: Stage) => {
        const path = `${sandbox.workspace}/by-the-run.txt`;
        const ran = outcomeOf(await runProgram(sandbox, writeOwn, { path }));
        if (ran.result !== "reached") return ran;
        return reached(`the runner read: ${new TextDecoder().decode(await sandbox.readFile(path))}`);
      },
    } satisfies Allowance,
  ],
  "filesystem.none": [
    programAllowance({
      id: "filesystem.none/scratch",
      title: "scratch can be written",
      options: { cwd: "/" },
      program: scratch,
    }),
  ],
  "filesystem.host-hidden": [
    programAllowance({
      id: "filesystem.host-hidden/runtime",
      title: "programs of the host can be run",
      program: `attempt("sh", lambda: subprocess.run(["/bin/sh", "-c", "echo works"], stdout=subprocess.PIPE).stdout.decode())`,
    }),
  ],
} as const;

const writeOwn = `
def write():
    with open(P["path"], "w") as file:
        file.write("by the run")
    return "written"
attempt("write", write)`;

/** The other side: the intended use of a credential works. */
const credentialUse = programAllowance({
  id: "secrets.hidden/credential-use",
  title: "a credential arrives at its host when its placeholder is sent",
  needsCredentials: true,
  parameters: credentialParameters,
  program: `${askProgram}
attempt("use", lambda: b" 200" in ask(lines(b"/", b"Authorization: Bearer " + key()))[:16] and "it was accepted")`,
  aftermath: async ({ decoys }, nonce) => {
    const [sent] = decoys.keys?.received(nonce) ?? [];
    if (sent !== undefined && headerOf(sent, "authorization").join() === `Bearer ${decoys.secret}`)
      return "it arrived";
    throw new Error("the host wasn't sent the value");
  },
});

const named = (capability: "environment.named-only" | "environment.per-tool" | "secrets.hidden") =>
  programAllowance({
    id: `${capability}/named`,
    title: "a variable named for a process is set",
    options: { env: { NAMED_FOR_IT: "its value" } },
    program: `attempt("own", lambda: os.environ.get("NAMED_FOR_IT"))`,
  });

const processAllowances = {
  "process.contained": [
    programAllowance({
      id: "process.contained/children",
      title: "a process can start, signal and await its own",
      program: `
def children():
    child = subprocess.Popen(["/bin/sleep", "30"])
    child.terminate()
    return child.wait() == -signal.SIGTERM and "ended by its parent"
attempt("child", children)`,
    }),
  ],
  "environment.named-only": [named("environment.named-only")],
  "environment.per-tool": [named("environment.per-tool")],
  "secrets.hidden": [named("secrets.hidden"), credentialUse],
} as const;

const halfOf = (limit: number) => Math.floor(limit / 2);

const take = `
held = []
def take():
    for _ in range(${halfOf(smallLimits.memoryMb)}):
        block = bytearray(1 << 20)
        block[::4096] = b"x" * len(block[::4096])
        held.append(block)
    return "%d MiB" % len(held)
attempt("own share", take)`;

const fork = `
hold = os.pipe()
def fork():
    for _ in range(${halfOf(smallLimits.processes)}):
        if os.fork() == 0:
            os.close(hold[1])
            os.read(hold[0], 1)
            os._exit(0)
    return "${halfOf(smallLimits.processes)} processes"
attempt("own share", fork)`;

const resourcesAllowances = {
  "resources.memory": [
    programAllowance({
      id: "resources.memory/own-share",
      title: "half of the limit can be used",
      alone: true,
      program: take,
    }),
    neighbour("resources.memory", take),
  ],
  "resources.processes": [
    programAllowance({
      id: "resources.processes/own-share",
      title: "half of the limit can be used",
      alone: true,
      program: fork,
    }),
    neighbour("resources.processes", fork),
  ],
  "resources.cpu": [
    programAllowance({
      id: "resources.cpu/own-share",
      title: "a program runs to its end",
      alone: true,
      program: `attempt("sum", lambda: "%d" % sum(range(100000)))`,
    }),
  ],
  "resources.disk": [
    programAllowance({
      id: "resources.disk/own-share",
      title: "half of the limit can be used",
      alone: true,
      program: `
def write():
    with open("half", "wb") as file:
        file.write(bytes(${halfOf(smallLimits.diskMb)} << 20))
    return "${halfOf(smallLimits.diskMb)} MiB"
attempt("own share", write)`,
    }),
  ],
} as const;

/** Each session has a separate limit: together they may use more than one of them alone. */
function neighbour(capability: Capability, program: string): Allowance {
  return {
    id: `${capability}/neighbour`,
    capability,
    title: "two sessions can use their limits at the same time",
    alone: true,
    perform: async (stage: Stage) => {
      const holder = await stage.openAnother();
      const another = await stage.openAnother();
      const holding = [];
      for (const sandbox of [holder, another]) {
        const started = await sandbox.spawn(commandOf(`${program}\nsay("HOLDING")\nsys.stdin.read()`, {}));
        holding.push(started);
        if ((await waitForLine(started.stdout, "HOLDING")) === undefined)
          return notRun("a neighbour ended before it held its share");
      }
      try {
        return outcomeOf(await runProgram(stage.sandbox, program, {}));
      } finally {
        await Promise.all(holding.map((started) => started.kill()));
      }
    },
  };
}

const inboundAllowances = {
  "inbound.ports": [
    {
      id: "inbound.ports/listed",
      capability: "inbound.ports",
      title: "a server on a listed port can be reached",
      perform: (stage: Stage) =>
        withServer(stage, stage.sandbox, async ({ listed, answer }) => {
          const { isReached, detail } = await tryPort(stage.sandbox, listed, answer);
          return isReached ? reached(detail) : blocked(detail);
        }),
    } satisfies Allowance,
  ],
} as const;

/** What must still work under each capability: a sandbox that allows nothing fulfils none. */
export const allowances: Readonly<Record<Capability, NonEmptyArray<Allowance>>> = {
  ...networkAllowances,
  ...filesystemAllowances,
  ...processAllowances,
  ...resourcesAllowances,
  ...inboundAllowances,
};
