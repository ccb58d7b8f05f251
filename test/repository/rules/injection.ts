import type { Class, Decorator } from "oxc-parser";
import { classesOf, type SourceFile } from "./source-file.js";

const injectable = new Set(["injectable", "singleton", "scoped", "autoInjectable"]);
const injecting = new Set(["inject", "injectAll"]);

/** tsyringe silently passes `undefined` for a constructor parameter that doesn't say what to inject. */
export function missingInjections(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) =>
    classesOf(file).flatMap((found) => {
      const parameters = constructorParameters(found);
      const missing = parameters.filter((decorators) => !decorators.some((name) => injecting.has(name)));
      const isInjected = namesOf(found.decorators).some((name) => injectable.has(name));
      if (!isInjected && missing.length === parameters.length) return [];
      return missing.map(
        () => `${file.path}: a constructor parameter of ${found.id?.name ?? "a class"} has no @inject(TOKEN)`,
      );
    }),
  );
}

/** For each parameter, the names of its decorators. */
function constructorParameters(found: Class): string[][] {
  return found.body.body
    .filter((member) => member.type === "MethodDefinition" && member.kind === "constructor")
    .flatMap((member) =>
      "value" in member && member.value && "params" in member.value ? member.value.params : [],
    )
    .map((parameter) => namesOf("decorators" in parameter ? parameter.decorators : []));
}

function namesOf(decorators: readonly Decorator[] = []): string[] {
  return decorators.flatMap(({ expression }) => {
    const named = expression.type === "CallExpression" ? expression.callee : expression;
    return named.type === "Identifier" ? [named.name] : [];
  });
}
