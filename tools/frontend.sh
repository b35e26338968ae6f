#!/usr/bin/env bash
# Install MathJax, reveal.js, axe-core, TypeScript (which reads our scripts), terser (which shortens some), what runs a model and Python in the page and Chinese fonts from the lock file and lay out what the pages load in frontend/dist.
set -euo pipefail
cd "$(dirname "$0")/../frontend"
npm ci --no-audit --no-fund --silent --ignore-scripts
rm -rf dist
mkdir -p dist/mathjax/output/chtml dist/mathjax/input/tex dist/reveal dist/live dist/fonts dist/pyodide
math=node_modules/mathjax/es5
cp -r $math/tex-mml-chtml.js $math/a11y $math/sre dist/mathjax/
cp -r $math/input/tex/extensions dist/mathjax/input/tex/
cp -r $math/output/chtml/fonts dist/mathjax/output/chtml/
cp node_modules/mathjax/LICENSE dist/mathjax/
cp node_modules/reveal.js/dist/reveal.js node_modules/reveal.js/dist/reveal.css node_modules/reveal.js/LICENSE dist/reveal/
cp node_modules/reveal.js/plugin/notes/notes.js dist/reveal/
ort=node_modules/onnxruntime-web
cp $ort/dist/ort.wasm.bundle.min.mjs node_modules/@huggingface/tokenizers/dist/tokenizers.min.mjs dist/live/
cp node_modules/@huggingface/tokenizers/LICENSE dist/live/LICENSE-tokenizers
gzip -9nc $ort/dist/ort-wasm-simd-threaded.wasm >dist/live/ort.wasm.gz  # 14 MB to 4; the page unpacks it
py=node_modules/pyodide  # Python for the exercises: the core and the standard library
cp $py/pyodide.mjs $py/pyodide.asm.mjs $py/pyodide.asm.wasm $py/python_stdlib.zip $py/README.md dist/pyodide/
sans=node_modules/@fontsource/noto-sans-sc
cp $sans/files/noto-sans-sc-chinese-simplified-{400,700}-normal.woff dist/fonts/
cp $sans/LICENSE dist/fonts/LICENSE-noto-sans-sc
