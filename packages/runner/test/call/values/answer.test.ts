import { RequestInvalid } from "@ambit/core";
import { expect, it } from "vitest";
import { type InteractionKind, readAnswer } from "../../../src/call/answer.js";

const noApproval = "approved must be true or false: this interaction asks for an approval";
const noOutput = "output must hold the call's output: this interaction asks for it";

function refusal(kind: InteractionKind, body: unknown): readonly string[] {
  try {
    readAnswer(kind, body);
  } catch (error) {
    if (error instanceof RequestInvalid) return error.issues.map(({ path, message }) => `${path} ${message}`);
    throw error;
  }
  return [];
}

it.each<[InteractionKind, unknown, readonly string[]]>([
  ["user_approval", {}, [noApproval]],
  ["user_approval", "yes", [noApproval]],
  ["user_approval", { approved: "yes" }, [noApproval]],
  ["user_approval", { approved: true, comment: "" }, ["comment is not a known field: remove it"]],
  ["user_approval", { output: 1 }, [noApproval, "output is not a known field: remove it"]],
  ["client_tool", {}, [noOutput]],
  ["client_tool", null, [noOutput]],
  ["client_tool", { output: 1, iserror: true }, ["iserror is not a known field: did you mean `isError`?"]],
  ["client_tool", { output: 1, isError: 1 }, ["isError must be true or false, not a number"]],
])("says what is wrong with an answer to a question of the kind %s: %j", (kind, body, issues) => {
  expect(refusal(kind, body)).toEqual(issues);
});

it("reads the answers that fit", () => {
  expect(readAnswer("user_approval", { approved: false })).toEqual({
    output: { approved: false },
    isError: false,
  });
  expect(readAnswer("client_tool", { output: null })).toEqual({ output: null, isError: false });
});
