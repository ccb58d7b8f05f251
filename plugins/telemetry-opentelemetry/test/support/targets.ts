import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "@ambit/backend-kit";
import { OtlpReceiver } from "@ambit/otlp-receiver";
import { onTestFinished } from "vitest";

/** Where telemetry is sent, and what arrives in the end. */
export interface Target {
  readonly http: string;
  readonly grpc: string;
  readonly received: OtlpReceiver;
}

/** A receiver. */
export async function receiver(): Promise<Target> {
  const received = await OtlpReceiver.start();
  onTestFinished(() => received[Symbol.asyncDispose]());
  return { http: received.url, grpc: received.grpcUrl, received };
}

/** The official collector, which passes everything on to a receiver. @param program its path */
export async function collector(program: string): Promise<Target> {
  const { received } = await receiver();
  const [http = 0, grpc = 0] = await freePorts(2);
  const folder = await mkdtemp(join(tmpdir(), "ambit-collector-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const config = join(folder, "collector.yaml");
  await writeFile(config, configuration(http, grpc, received.url));
  const child = spawn(program, ["--config", `file:${config}`], { stdio: ["ignore", "ignore", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  for await (const piece of child.stderr) {
    said += String(piece);
    if (said.includes("Everything is ready")) break;
  }
  if (!said.includes("Everything is ready")) throw new Error(`the collector doesn't start: ${said}`);
  return { http: `http://127.0.0.1:${http}`, grpc: `http://127.0.0.1:${grpc}`, received };
}

function configuration(http: number, grpc: number, to: string): string {
  const pipeline = { receivers: ["otlp"], exporters: ["otlphttp"] };
  return JSON.stringify({
    receivers: {
      otlp: {
        protocols: {
          http: { endpoint: `127.0.0.1:${http}` },
          grpc: { endpoint: `127.0.0.1:${grpc}` },
        },
      },
    },
    exporters: { otlphttp: { endpoint: to, compression: "none", sending_queue: { enabled: false } } },
    service: {
      telemetry: { metrics: { level: "none" } },
      pipelines: { traces: pipeline, metrics: pipeline, logs: pipeline },
    },
  });
}
