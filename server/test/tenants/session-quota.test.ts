import { expect, it } from "vitest";
import { newToken } from "../../src/tenants/caller.js";
import { saying } from "../support/scripted-agent.js";
import { asking } from "../support/server.js";
import { describePlaces } from "../support/stored-server.js";

const { token, hash } = newToken();
const headers = { authorization: `Bearer ${token}` };
const names = Array.from({ length: 12 }, (_, index) => `s${index}`);

describePlaces("a project's quota of open sessions", (serve) => {
  const openedAtOnce = async (limits: object) => {
    const tokens = [{ token: hash, project: "one", limits }];
    const { post, runner } = await serve(saying("x"), { configuration: { tokens } });
    // Their connections are open then, so that they come at the same moment.
    await Promise.all(names.map(() => post("/plan", asking, headers)));
    const answers = await Promise.all(
      names.map((sessionId) => post("/run", { ...asking, sessionId }, headers)),
    );
    return { statuses: answers.map(({ status }) => status).toSorted(), open: runner.sessions.length };
  };

  it("holds for requests that come at once", async () => {
    expect(await openedAtOnce({})).toEqual({ statuses: names.map(() => 200), open: names.length });
    expect(await openedAtOnce({ sessions: 1 })).toEqual({
      statuses: [200, ...names.slice(1).map(() => 429)],
      open: 1,
    });
  });
});
