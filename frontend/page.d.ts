// What the pages know and the browser's own types do not tell: an element that a query finds may be of any kind.
interface EventTarget {
  blur: any; checked: any; closest: any; dataset: any; disabled: any; files: any; focus: any; hidden: any; key: any; matches: any; max: any; open: any;
  style: any; tabIndex: any; target: any; type: any; value: any;
}
interface Event { key: any; request: any; respondWith: any; waitUntil: any }
interface ChildNode { append: any }
interface Window { MathJax: any; clients: any; predictionsOfThisPage: any; skipWaiting: any }
declare const DOCUMENTATION_OPTIONS: any; // of Sphinx
declare const Search: any;
declare const Documentation: any;
declare const Reveal: any;
declare const SPEAKER: any; // src/book/slides.py writes it
declare module "*.mjs";
