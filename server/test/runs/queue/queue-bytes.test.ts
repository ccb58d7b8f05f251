import { expect, it } from "vitest";
import { asking } from "../../support/server.js";
import { counting, describePlaces } from "../../support/stored-server.js";

const requests = 12;
const limits = { maxMiB: 1, queuedRuns: 100 };
/** As it is sealed, a request has a third more: two of them fit. */
const large = { messages: [{ role: "user", content: "x".repeat(330_000) }] };

describePlaces("a queue with a limit of bytes", (serve) => {
  it("holds it, however many requests come at once", async () => {
    const { script } = counting(1);
    const configuration = { limits: { concurrentRuns: 1 }, store: limits, memory: limits };
    const { post } = await serve(script, { configuration });
    const detached = async (body: object) => {
      const response = await post("/run", body, { prefer: "respond-async" });
      const { error } = Object(await response.json());
      return { status: response.status, error };
    };
    expect(await detached(asking)).toMatchObject({ status: 202 });
    const small = await Promise.all(Array.from({ length: requests }, () => detached(asking)));
    expect(small.filter(({ status }) => status === 202)).toHaveLength(requests);
    const sent = await Promise.all(Array.from({ length: requests }, () => detached(large)));
    expect(sent.filter(({ status }) => status === 202)).toHaveLength(2);
    const refused = sent.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(requests - 2);
    for (const { error } of refused)
      expect(error).toContain("The requests of queued runs take too much room");
  });
});
