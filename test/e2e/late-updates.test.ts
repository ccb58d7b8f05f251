import { expect, it } from "vitest";
import { bodyOf, demo, serve } from "./support/ambit.js";

it("an agent's text that comes after its turn is named by the next result, and isn't its text", async () => {
  const { post, log } = await serve();
  const turn = async (...script: string[]) =>
    await bodyOf(await post("/run", { ...demo(...script), sessionId: "late" }));
  expect(await turn("say one", "late 100 too late")).toMatchObject({ ok: true, output: "one" });
  await expect.poll(log, { timeout: 10_000 }).toContain("the agent sent updates of a turn that it had ended");
  const second = await turn("say two");
  expect(second).toMatchObject({ ok: true, output: "two", receipt: { session: { history: "warm" } } });
  expect(second.warnings).toEqual([
    {
      path: "harness",
      message: "After the end of an earlier turn the demo agent sent 1 piece of text of it: not shown.",
    },
  ]);
  expect((await turn("say three")).warnings).toBeUndefined();
});
