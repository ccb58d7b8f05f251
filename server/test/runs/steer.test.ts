import { expect, it } from "vitest";
import { saying, waiting } from "../support/scripted-agent.js";
import { asking, bodyOf } from "../support/server.js";
import { describePlaces } from "../support/stored-server.js";

interface Refused {
  readonly failure: { readonly issues: readonly { readonly path: string; readonly message: string }[] };
}

describePlaces("a message for a run in the middle of its turn", (serve) => {
  it("is refused where its agent takes none, and where it isn't in a turn", async () => {
    const { post } = await serve(waiting);
    const send = async (run: string, body: object = { content: "hurry" }) => {
      const response = await post(`/runs/${run}/messages`, body);
      const { failure } = await bodyOf<Refused>(response);
      return [response.status, ...(failure.issues ?? []).map(({ path, message }) => `${path}: ${message}`)];
    };
    const running = post("/stream", asking, { "idempotency-key": "r" });
    const reader = (await running).body?.getReader();
    await reader?.read();
    await expect
      .poll(() => send("r"))
      .toEqual([400, expect.stringMatching(/^runId: 'scripted' takes no message before .*whenBusy/)]);
    expect(await send("r", { content: "" })).toEqual([400, expect.stringContaining("content")]);
    expect(await send("r", { text: "hurry" })).toEqual([400, expect.anything(), expect.anything()]);
    expect(await send("none")).toEqual([404]);
    await post("/runs/r/cancel", {});
    await expect.poll(async () => (await send("r"))[1]).toContain("names a run that is ended");
  });

  it("is refused for another project's run", async () => {
    const { post } = await serve(saying("done"));
    await post("/run", { ...asking, projectId: "p", runId: "r" });
    expect((await post("/runs/r/messages?projectId=other", { content: "hurry" })).status).toBe(404);
  });
});
