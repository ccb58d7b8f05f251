import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The page lies in the package `ambit`, which serves it below `/console`. */
export default defineConfig({
  base: "/console/",
  plugins: [react(), tailwind()],
  build: {
    outDir: "../server/dist/console",
    emptyOutDir: true,
    target: "es2023",
    // The server's policy allows no inline script, and no font of a data: URL.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
