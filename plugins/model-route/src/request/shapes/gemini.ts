import {
  byMember,
  each,
  type Form,
  jsonSchema,
  listOf,
  object,
  opaque,
  orScalar,
  scalar,
  settings,
} from "./form.js";

/** Google's servers read each name in camel case and in snake case. */
function bothCases(members: Readonly<Record<string, Form>>): Readonly<Record<string, Form>> {
  const snake = Object.entries(members).map(([name, form]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    form,
  ]);
  return { ...members, ...Object.fromEntries(snake) };
}

const inlineData = object(bothCases(each(settings, "mimeType data displayName")));
const unknownPart = (key: string) =>
  /^'file_?data'$/i.test(key) ? "a fetch of an address" : `the part ${key}`;

const functionCall = object({
  ...bothCases(each(scalar, "id name willContinue")),
  ...bothCases(each(opaque, "args partialArgs")),
});
const functionResponse = object({
  ...bothCases(each(scalar, "id name willContinue scheduling")),
  response: opaque,
  parts: listOf(byMember(bothCases({ inlineData }), unknownPart)),
});

const part = byMember(
  bothCases({
    ...each(scalar, "text thought thoughtSignature"),
    ...each(settings, "videoMetadata mediaResolution partMetadata"),
    inlineData,
    functionCall,
    functionResponse,
  }),
  unknownPart,
);

/** Its parts are a list, or one part. */
const parts: Form = listOf(part).or(part);
const content = object({ role: scalar, parts });

const declaration = object(
  bothCases({
    ...each(scalar, "name description behavior"),
    ...each(jsonSchema, "parameters parametersJsonSchema response responseJsonSchema"),
  }),
);
const tool = byMember(bothCases({ functionDeclarations: listOf(declaration) }), (key) => `the tool ${key}`);

const members = bothCases({
  ...each(scalar, "model serviceTier"),
  contents: listOf(content).or(content),
  systemInstruction: orScalar(content),
  tools: listOf(tool),
  ...each(settings, "toolConfig safetySettings"),
  generationConfig: jsonSchema,
  labels: opaque,
});

/** Google's Gemini API, also on Vertex AI. */
export const gemini: Form = object({
  ...members,
  // To count the tokens of a whole request.
  ...bothCases({ generateContentRequest: object(members) }),
});
