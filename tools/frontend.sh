#!/usr/bin/env bash
# Install MathJax, reveal.js and axe-core from the lock file and lay out what the pages load in frontend/dist.
set -euo pipefail
cd "$(dirname "$0")/../frontend"
npm ci --no-audit --no-fund --silent
rm -rf dist
mkdir -p dist/mathjax/output/chtml dist/mathjax/input/tex dist/reveal
math=node_modules/mathjax/es5
cp -r $math/tex-mml-chtml.js $math/a11y $math/sre dist/mathjax/
cp -r $math/input/tex/extensions dist/mathjax/input/tex/
cp -r $math/output/chtml/fonts dist/mathjax/output/chtml/
cp node_modules/mathjax/LICENSE dist/mathjax/
cp node_modules/reveal.js/dist/reveal.js node_modules/reveal.js/dist/reveal.css node_modules/reveal.js/LICENSE dist/reveal/
cp node_modules/reveal.js/plugin/notes/notes.js dist/reveal/
