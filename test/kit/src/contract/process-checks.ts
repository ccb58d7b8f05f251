import assert from "node:assert/strict";
import {
  commandOf,
  endProcessesWith,
  freshNonce,
  processesWith,
  searchPath,
  textOf,
  waitForLine,
} from "@ambit/attacks";
import { type ContractCheck, shell } from "./contract.js";

const megabytes = 8;

/** A parent and children that would all run for minutes. */
const family = `
for _ in range(3):
    if os.fork() == 0:
        time.sleep(120)
        os._exit(0)
say("STARTED")
time.sleep(120)`;

export const processChecks: readonly ContractCheck[] = [
  {
    title: "reports how a process ended",
    check: async (contract) => {
      const sandbox = await contract.shared();
      for (const code of [0, 3, 255]) {
        assert.equal((await shell(sandbox, `exit ${code}`)).code, code);
      }
      const killed = await shell(sandbox, "kill -KILL $$");
      assert.ok(
        killed.signal === "SIGKILL" || killed.code === 137,
        `killed, it ended with ${JSON.stringify(killed)}`,
      );
    },
  },
  {
    title: "passes arguments to a program unchanged",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const hard = ["", "a b", "$HOME", "`id`", '"', "'", "\n", "--help", "é☃", "*"];
      const { stdout } = await script(sandbox, hard);
      assert.deepEqual(JSON.parse(stdout), hard);
    },
  },
  {
    title: "fails clearly for a program that doesn't exist",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const argv = ["ambit-there-is-no-such-program"] as const;
      const ended = await sandbox.spawn({ argv, env: { PATH: searchPath } }).then(
        async (started) => (await started.exit).code !== 0,
        () => true,
      );
      assert.ok(ended, "it started, and ended well");
    },
  },
  {
    title: "passes on standard input and its end",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const cat = await sandbox.spawn({ argv: ["/bin/cat"], env: { PATH: searchPath } });
      const writer = cat.stdin.getWriter();
      const sent = "line\n".repeat(100_000);
      const received = textLength(cat.stdout);
      await writer.write(new TextEncoder().encode(sent));
      await writer.close();
      assert.equal(await received, sent.length);
      assert.equal((await cat.exit).code, 0);
    },
  },
  {
    title: "delivers a large output on both streams completely",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const started = await sandbox.spawn(
        commandOf(
          `
import threading
def pour(descriptor):
    for _ in range(${megabytes}):
        data = b"x" * (1 << 20)
        while data:
            data = data[os.write(descriptor, data):]
both = [threading.Thread(target=pour, args=(one,)) for one in (1, 2)]
[one.start() for one in both]
[one.join() for one in both]`,
          {},
        ),
      );
      const [out, err, exit] = await Promise.all([
        textLength(started.stdout),
        textLength(started.stderr),
        started.exit,
      ]);
      assert.equal(exit.code, 0);
      assert.equal(out, megabytes * 2 ** 20 + "RAN \n".length);
      assert.equal(err, megabytes * 2 ** 20);
    },
  },
  {
    title: "kills a process with everything it started, and can be called twice",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const mark = freshNonce();
      try {
        const started = await sandbox.spawn(commandOf(family, { mark }));
        assert.ok(await waitForLine(started.stdout, "STARTED"));
        await started.kill();
        const { code } = await started.exit;
        assert.notEqual(code, 0);
        await started.kill();
        await started.kill("SIGTERM");
        assert.deepEqual(processesWith(mark), []);
      } finally {
        endProcessesWith(mark);
      }
    },
  },
  {
    title: "kills a process when its signal aborts",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const mark = freshNonce();
      const abort = new AbortController();
      try {
        const started = await sandbox.spawn({ ...commandOf(family, { mark }), signal: abort.signal });
        assert.ok(await waitForLine(started.stdout, "STARTED"));
        abort.abort();
        assert.notEqual((await started.exit).code, 0);
        assert.deepEqual(processesWith(mark), []);
      } finally {
        endProcessesWith(mark);
      }
    },
  },
  {
    title: "keeps the outputs of simultaneous processes apart",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const numbers = [1, 2, 3, 4, 5, 6];
      const said = await Promise.all(
        numbers.map((number) => shell(sandbox, `echo ${number}; echo e${number} >&2`)),
      );
      assert.deepEqual(
        said.map(({ stdout, stderr }) => [stdout.trim(), stderr.trim()]),
        numbers.map((number) => [`${number}`, `e${number}`]),
      );
    },
  },
];

async function script(sandbox: Parameters<typeof shell>[0], words: readonly string[]) {
  const program = "import json, sys; print(json.dumps(sys.argv[1:]))";
  const started = await sandbox.spawn({
    argv: ["/usr/bin/python3", "-I", "-S", "-c", program, ...words],
    env: { PATH: searchPath },
  });
  const [stdout] = await Promise.all([textOf(started.stdout), textOf(started.stderr), started.exit]);
  return { stdout };
}

async function textLength(stream: ReadableStream<Uint8Array>): Promise<number> {
  let length = 0;
  for await (const chunk of stream) length += chunk.length;
  return length;
}
