import { once } from "node:events";
import { request } from "node:http";
import blobsFolder from "@ambit/blobs-folder";
import { expect, it, onTestFinished } from "vitest";
import { saying, scriptedAgent } from "../support/scripted-agent.js";
import { serveScript } from "../support/server.js";
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
