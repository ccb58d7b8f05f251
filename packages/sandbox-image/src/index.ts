export { type BuildOptions, buildSandboxImage } from "./build.js";
export { hasSandboxImage, type LoadOptions, loadSandboxImage } from "./engine.js";
export { type RecipeOptions, sandboxImageName } from "./recipe.js";
