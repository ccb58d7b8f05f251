import { Daytona } from "@daytona/sdk";
import { expect, it, onTestFinished } from "vitest";
import { openSessionPipe } from "../../src/pipe.js";
import { openSdkService } from "../../src/platform/sdk-service.js";
import type { Machine } from "../../src/platform/service.js";
import { logged, useLoopback } from "../support/loopback.js";

const loopback = useLoopback();

/** A new sandbox over the official SDK, as the backend uses it. */
async function createMachine(): Promise<Machine> {
  const { apiKey, apiUrl } = loopback();
  const platform = new Daytona({ apiKey, apiUrl, target: "us" });
  const created = await platform.create({ snapshot: "root" });
  const service = await openSdkService({ apiKey, apiUrl, target: "us", requestTimeoutMs: 60_000 });
  onTestFinished(async () => {
    await created.delete();
    await platform[Symbol.asyncDispose]();
  });
  return await service.get(created.id);
}

const pipeTo = (machine: Machine, line: string) =>
  openSessionPipe({
    machine,
    argv: ["/bin/sh", "-c", line],
    apiKey: loopback().apiKey,
    connectMs: 60_000,
    log: logged().log,
  });

const inputs = () =>
  loopback()
    .requests()
    .filter(({ url }) => url.endsWith("/input")).length;

// apps/daemon/pkg/session/input.go responds to both with "failed to open input pipe".
it("repeats its first input until the command's pipe exists, and none after the command's end", async () => {
  const machine = await createMachine();
  const pipe = await pipeTo(machine, "read -r line; echo got:$line");
  onTestFinished(() => pipe.close());
  await pipe.write("first\n");
  expect(await new Response(pipe.output).text()).toBe("got:first\n");
  const before = inputs();
  await expect(pipe.write("late\n")).rejects.toThrow(/failed to open input pipe/);
  expect(inputs() - before).toBe(1);
});

it("doesn't repeat the first input of a command that has ended once the pipe is closed", async () => {
  const machine = await createMachine();
  const pipe = await pipeTo(machine, "echo over; exit 3");
  expect(await new Response(pipe.output).text()).toBe("over\n");
  const writing = pipe.write("late\n");
  const failed = expect(writing).rejects.toThrow();
  await expect.poll(inputs, { timeout: 10_000 }).toBeGreaterThan(0);
  await pipe.close();
  await failed;
  await expect(pipe.write("later\n")).rejects.toThrow();
});
