import { expect } from "vitest";
import { demo, type Server } from "./ambit.js";

/** An agent that writes, changes and deletes files, and leaves what isn't one. */
export const working = {
  ...demo(
    "write src/app.txt one\\n2\\nthree\\n",
    "write dist/report.txt done\\n",
    "run rm src/gone.txt; printf 'a\\0b' > src/binary; chmod +x src/run.sh; echo x > debug.log",
    "run ln -s /etc/passwd dist/link; mkfifo dist/pipe; echo secret > /tmp/other; ln /tmp/other dist/hard || true; rm -f dist/hard",
    "say done",
  ),
  harnessFiles: [
    { path: "src/app.txt", content: "one\ntwo\nthree\n" },
    { path: "src/gone.txt", content: "gone\n" },
    { path: "src/run.sh", content: "#!/bin/sh\n" },
    { path: ".gitignore", content: "*.log\n" },
  ],
  permissions: { default: "allow" },
  outputs: { include: ["dist/**"], patch: true },
};

/** What it left, with the patch, as a caller of the server gets it. */
export async function outputsOn(server: Server, request: object) {
  const response = await server.post("/run", request);
  const result = JSON.parse(await response.text());
  expect(result, server.log()).toMatchObject({ ok: true, output: "done" });
  const patch = await (await fetch(`${server.url}/runs/${result.runId}/patch`)).text();
  return { runId: String(result.runId), result, outputs: result.receipt.outputs, patch };
}
