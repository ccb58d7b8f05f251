import type { Class, Decorator } from "oxc-parser";
import { classesOf, type SourceFile } from "./source-file.js";

const injectable = new Set(["injectable", "singleton", "scoped", "autoInjectable"]);
const injecting = new Set(["inject", "injectAll"]);

/** tsyringe silently passes `undefined` for a constructor parameter that doesn't say what to inject. */
export function missingInjections(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) =>
    classesOf(file).flatMap((found) => {
      const all = constructorParameters(found);
      // The last parameters may lack it if they are optional: tests pass them.
      const parameters = all.slice(0, all.findLastIndex((one) => isInjectedInto(one) || !one.isOptional) + 1);
      const missing = parameters.filter((one) => !isInjectedInto(one));
      const isInjected = namesOf(found.decorators).some((name) => injectable.has(name));
      if (!isInjected && missing.length === parameters.length) return [];
      return missing.map(
        () => `${file.path}: a constructor parameter of ${found.id?.name ?? "a class"} has no @inject(TOKEN)`,
      );
    }),
  );
}

interface Parameter {
  /** Names. */
  readonly decorators: readonly string[];
  readonly isOptional: boolean;
}

const isInjectedInto = ({ decorators }: Parameter) => decorators.some((name) => injecting.has(name));

function constructorParameters(found: Class): Parameter[] {
  return found.body.body
    .filter((member) => member.type === "MethodDefinition" && member.kind === "constructor")
    .flatMap((member) =>
      "value" in member && member.value && "params" in member.value ? member.value.params : [],
    )
    .map((parameter) => {
      const pattern = "parameter" in parameter ? parameter.parameter : parameter;
      return {
        decorators: namesOf("decorators" in parameter ? parameter.decorators : []),
        isOptional:
          pattern.type === "AssignmentPattern" || ("optional" in pattern && pattern.optional === true),
      };
    });
}

function namesOf(decorators: readonly Decorator[] = []): string[] {
  return decorators.flatMap(({ expression }) => {
    const named = expression.type === "CallExpression" ? expression.callee : expression;
    return named.type === "Identifier" ? [named.name] : [];
  });
}
