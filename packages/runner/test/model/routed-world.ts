import { type FakeAnswer, FakeGateway, fakeUse } from "@ambit/fakes/gateway";
import { done, type Script, untilAborted } from "@ambit/fakes/harness";
import { createWorld, type WorldOptions } from "../fakes/world.js";

/** Sends that many requests to its model, and reports the number of responses; ends on cancel. */
export const asks = (
  gateway: FakeGateway,
  times: number,
  answer: FakeAnswer = { usage: { input: 60, output: 40, cost: 0.01 } },
): Script =>
  async function* ({ signal }) {
    let answered = 0;
    for (let time = 0; time < times; time += 1) {
      const admission = await untilAborted(signal, gateway.call({ ...answer, signal }));
      if (signal.aborted) break;
      if (admission?.allowed === true) answered += 1;
      yield { type: "message", text: `answered ${answered}` };
    }
    yield done;
  };

export async function world(times: number, options: WorldOptions & { readonly answer?: FakeAnswer } = {}) {
  const gateway = new FakeGateway();
  const made = await createWorld({
    gateway,
    script: asks(gateway, times, options.answer),
    ...options,
    harness: { model: () => fakeUse, visibleCredentials: () => ["MODEL_KEY"], ...options.harness },
  });
  return { ...made, gateway };
}
