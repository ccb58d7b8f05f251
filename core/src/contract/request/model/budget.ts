import { z } from "zod";

const dollars = z.number().positive();
const count = z.int().positive();

const amounts = {
  usd: dollars.optional().meta({
    description:
      "US dollars, by the prices in the model gateway's configuration. Every model of the run needs one.",
  }),
  tokens: count.optional().meta({ description: "Tokens, in and out, including cached ones." }),
  requests: count.optional().meta({ description: "Requests to the model that generate an answer." }),
};

const hasAmount = (given: object) => Object.keys(amounts).some((name) => name in given);
const needsAmount = "must limit something: usd, tokens or requests";

/** What may be used of a model. */
export const budgetAmountsSchema = z.strictObject(amounts).refine(hasAmount, needsAmount);
export type BudgetAmounts = z.infer<typeof budgetAmountsSchema>;

/** What a run may use of its model, as its provider counts it. */
export const budgetSchema = z
  .strictObject({
    ...amounts,
    session: budgetAmountsSchema.optional().meta({
      description:
        "The same for all runs of the session together. The runner remembers it for a day after the session's last run.",
    }),
    onExceeded: z.enum(["fail", "ask"]).default("fail").meta({
      description:
        "`fail`: the run ends with `budget_exceeded` once more than that was used. `ask`: before the next request to the model the user is asked, as for an approval, and each yes grants the same amount again.",
    }),
  })
  .refine((given) => hasAmount(given) || given.session !== undefined, needsAmount);
export type Budget = z.infer<typeof budgetSchema>;
