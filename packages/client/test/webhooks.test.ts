import { createHmac, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { verifyWebhook } from "../src/index.js";

const [current, former, foreign] = [randomBytes(32), randomBytes(24), randomBytes(32)];
const secretOf = (key: Buffer) => `whsec_${key.toString("base64")}`;
const body = JSON.stringify({
  type: "run.finished",
  timestamp: "2026-11-29T10:00:00.000Z",
  data: { runId: "r" },
});
const now = Date.parse("2026-11-29T10:00:00.000Z");

/** As Standard Webhooks specifies, written down a second time. */
function headersFor(key: Buffer, { id = "msg_1", at = now, of = body } = {}) {
  const timestamp = String(Math.floor(at / 1_000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${of}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1a,x v1,${signature}` };
}

describe("a webhook", () => {
  it.each([
    ["with the secret", secretOf(current)],
    ["with one of several", [secretOf(former), secretOf(current)]],
  ])("is verified %s", async (_what, secrets) => {
    expect(await verifyWebhook(body, headersFor(current), secrets, now)).toEqual(JSON.parse(body));
    expect(await verifyWebhook(body, new Headers(headersFor(current)), secrets, now)).toEqual(
      JSON.parse(body),
    );
  });

  it.each([
    ["is signed with another secret", headersFor(foreign), now],
    ["has another body", headersFor(current, { of: `${body} ` }), now],
    ["has another id", { ...headersFor(current), "webhook-id": "msg_2" }, now],
    ["is six minutes old", headersFor(current), now + 360_000],
    ["is of the future", headersFor(current), now - 360_000],
    ["has no time", { ...headersFor(current), "webhook-timestamp": "soon" }, now],
    ["isn't signed", { ...headersFor(current), "webhook-signature": "" }, now],
    ["has a signature that isn't base64", { ...headersFor(current), "webhook-signature": "v1,%%" }, now],
  ])("is refused where it %s", async (_what, headers, at) => {
    const verifying = verifyWebhook(body, headers, [secretOf(current), secretOf(former)], at);
    await expect(verifying).rejects.toMatchObject({ name: "AmbitError", code: "unauthorized" });
  });
});
