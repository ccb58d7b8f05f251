import { createHash } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import blobsFolder from "@ambit/blobs-folder";
import { expect, it, onTestFinished } from "vitest";
import { saying, scriptedAgent } from "../support/scripted-agent.js";
import { bodyOf, serveScript } from "../support/server.js";
import { databaseFile } from "../support/stored-server.js";

it("a connection whose snapshot is refused before it is read to its end carries no other request", async () => {
  const blobs = { use: blobsFolder, config: { folder: await databaseFile() } };
  const plugins = [scriptedAgent(saying("x")), blobs];
  const { url } = await serveScript(saying("x"), { configuration: { plugins } });
  const asked = async (method: string, body = "") => {
    const sent = request(`${url}/snapshots`, { method });
    onTestFinished(() => void sent.destroy());
    // The rest of the body can't be sent.
    sent.on("error", () => {});
    sent.end(body);
    const [{ statusCode, headers }] = await once(sent, "response");
    return { status: statusCode, connection: headers.connection };
  };
  const ofAnotherVersion = `{ "version": 0 }\n${"x".repeat(10_000_000)}`;
  expect(await asked("POST", ofAnotherVersion)).toEqual({ status: 400, connection: "close" });
  // The control.
  expect(await asked("GET")).toEqual({ status: 200, connection: "keep-alive" });
});

it("a project's exports of snapshots are as many at a time as its readers may be", async () => {
  const blobs = { use: blobsFolder, config: { folder: await databaseFile() } };
  const plugins = [scriptedAgent(saying("x")), blobs];
  const { url, post } = await serveScript(saying("x"), {
    configuration: { plugins, server: { maxReadersPerProject: 1 } },
  });
  // More than the connection takes of it beforehand.
  const archive = "x".repeat(32_000_000);
  const info = {
    id: "0".repeat(32),
    sessionId: "s",
    sandbox: "none",
    createdAt: new Date().toISOString(),
    sha256: createHash("sha256").update(archive).digest("hex"),
    bytes: archive.length,
    entries: 0,
    skipped: 0,
  };
  const header = JSON.stringify({ format: "ambit-snapshot", version: 1, info, userMessages: [] });
  const { id } = await bodyOf<{ id: string }>(await post("/snapshots", `${header}\n${archive}`));
  const exported = () => fetch(`${url}/snapshots/${id}/archive`);
  const first = await exported();
  expect(first.status).toBe(200);
  const second = await exported();
  expect([second.status, await second.json()]).toMatchObject([429, { failure: { code: "at_capacity" } }]);
  await first.body?.cancel();
  // The control.
  const third = async () => {
    const response = await exported();
    await response.body?.cancel();
    return response.status;
  };
  await expect.poll(third).toBe(200);
});
