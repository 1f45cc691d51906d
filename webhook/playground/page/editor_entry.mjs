export { EditorState, Compartment } from "@codemirror/state";
export { EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { HighlightStyle, bracketMatching, foldGutter, indentOnInput, syntaxHighlighting } from "@codemirror/language";
export { MergeView, unifiedMergeView } from "@codemirror/merge";
export { yaml } from "@codemirror/lang-yaml";
export { tags } from "@lezer/highlight";
