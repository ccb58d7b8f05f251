import { expect, it } from "vitest";
import { newToken } from "../../src/tenants/caller.js";
import type { Script } from "../support/scripted-agent.js";
import { asking, bodyOf } from "../support/server.js";
import { describePlaces } from "../support/stored-server.js";

const [one, two] = [newToken(), newToken()];
const bearer = ({ token }: typeof one) => ({ authorization: `Bearer ${token}` });

const pausing: Script = async function* ({ onPermission }) {
  const verdict = await onPermission({ toolCallId: "c", toolName: "wipe", input: {} });
  if (verdict === "park") return;
  yield { type: "done", stopReason: "end_turn" };
};

describePlaces("a page after a question", (serve) => {
  it("of another project is the same as after one that doesn't exist", async () => {
    const tokens = [
      { token: one.hash, project: "one" },
      { token: two.hash, project: "two" },
    ];
    const { post, get } = await serve(pausing, { configuration: { tokens } });
    const ask = (tenant: typeof one) =>
      post("/run", { ...asking, sessionId: "s", permissions: { default: "ask" } }, bearer(tenant));
    const ids = async (tenant: typeof one, query = "") => {
      const { interactions } = await bodyOf<{ interactions: readonly { readonly id: string }[] }>(
        await get(`/interactions${query}`, bearer(tenant)),
      );
      return interactions.map(({ id }) => id);
    };
    // The other project's question is the newest.
    for (const tenant of [one, two]) await ask(tenant);
    const [[own], [theirs]] = [await ids(one), await ids(two)];
    expect([typeof own, typeof theirs]).toEqual(["string", "string"]);
    for (const after of [theirs, "none"]) {
      const refused = await get(`/interactions?after=${after}`, bearer(one));
      expect([refused.status, await refused.json()]).toMatchObject([
        400,
        { failure: { issues: [{ path: "after" }] } },
      ]);
    }
  });
});
