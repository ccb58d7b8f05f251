import { expect, it } from "vitest";
import { saying } from "../support/scripted-agent.js";
import { asking, bodyOf } from "../support/server.js";
import { describePlaces } from "../support/stored-server.js";

interface Copy {
  readonly request: Readonly<Record<string, unknown>>;
}

const secret = "sk-this-is-the-key-of-the-test";

describePlaces("the request of a run", (serve) => {
  it("is kept without its secrets, and begins the same run again", async () => {
    const { post, get } = await serve(saying("Hello."));
    const request = {
      ...asking,
      runId: "first",
      messages: [{ role: "user", content: `My key is ${secret}.` }],
      modelConnection: {
        provider: "openai",
        credentials: [
          { binding: { kind: "environment", name: "OPENAI_API_KEY" }, value: secret },
          // Too short to be searched for in texts.
          { binding: { kind: "environment", name: "PIN" }, value: "1a" },
        ],
      },
    };
    expect((await post("/run", request)).status).toBe(200);
    const answer = await get("/runs/first/request");
    const text = await answer.text();
    expect(answer.status).toBe(200);
    expect(text).not.toContain(secret);
    const { request: copy }: Copy = JSON.parse(text);
    expect(copy).toMatchObject({
      runId: "first",
      messages: [{ role: "user", content: "My key is [redacted]." }],
      modelConnection: { credentials: [{ value: "[redacted]" }, { value: "[redacted]" }] },
    });
    expect((await post("/run", { ...copy, runId: "second" })).status).toBe(200);
    expect(await bodyOf<Copy>(await get("/runs/second/request"))).toEqual({
      request: { ...copy, runId: "second" },
    });
  });

  it("is there for a run that waited, without the long texts of a large one", async () => {
    const { post, get } = await serve(saying("Hello."));
    const copyOf = async (runId: string) => await get(`/runs/${runId}/request`);
    const queued = { ...asking, sessionId: "s", whenBusy: "queue" };
    await Promise.all(["a", "b"].map((runId) => post("/run", { ...queued, runId })));
    for (const runId of ["a", "b"])
      expect(await bodyOf<Copy>(await copyOf(runId))).toMatchObject({ request: { runId, sessionId: "s" } });
    const large = (content: unknown) => [{ role: "user", content }];
    const image = { type: "image", mimeType: "image/png", data: "A".repeat(1_200_000) };
    const blocks = [{ type: "text", text: "What is it?" }, image];
    await post("/run", { ...asking, runId: "image", messages: large(blocks) });
    expect(await bodyOf<Copy>(await copyOf("image"))).toMatchObject({
      request: { messages: large([{ text: "What is it?" }, { data: "[redacted]" }]) },
    });
    const texts = Array.from({ length: 20 }, () => ({ type: "text", text: "x".repeat(60_000) }));
    await post("/run", { ...asking, runId: "large", messages: large(texts) });
    expect((await copyOf("large")).status).toBe(404);
    expect(await (await copyOf("large")).text()).toContain("has more than 1 MiB");
    expect(await (await copyOf("none")).text()).toContain("There is no run 'none'");
  });
});
