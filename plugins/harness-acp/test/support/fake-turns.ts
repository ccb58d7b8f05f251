import { type FakeTurn, fakeAgent } from "./fake-agent.js";
import { eventsOf, failureOf, turnOf } from "./runs.js";

/** The events of one turn of a fake agent, and what the fake saw. */
export async function eventsFor(onPrompt: (turn: FakeTurn) => Promise<unknown>, turn = turnOf()) {
  const fake = fakeAgent({ onPrompt });
  const { agent, scope } = await fake.start();
  const events = await eventsOf(agent, turn);
  await scope.close();
  return { ...fake, events, logged: scope.logged };
}

/** What one turn of a fake agent fails with. */
export async function failureFor(onPrompt: (turn: FakeTurn) => Promise<unknown>) {
  const { agent, scope } = await fakeAgent({ onPrompt }).start();
  const failed = await failureOf(agent, turnOf());
  await scope.close();
  return failed;
}
