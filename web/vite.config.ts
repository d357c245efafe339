import preact from "@preact/preset-vite";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [preact()],
  // The policy of the page allows its own files alone: nothing is put into the document.
  build: { outDir: "../python/tcpscape/web/static", emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false }, target: "es2022" },
  test: { include: ["tests/**/*.test.ts", "tests/**/*.test.tsx"], css: true },
});
