// A card in edit mode, with the console's own form, whose modules are served beside these.
import { make } from './dom.js';

const form = await import(new URL('./console/edit.js', import.meta.url).href);

/**
 * The form. It is filled from card.edit, and shows the errors that the server found.
 * @param {Card} card @param {(args: Record<string, unknown>) => void} send @param {() => void} close
 * @returns {HTMLElement}
 */
export function editorOf({ approval, edit }, send, close) {
  const editor = new form.Editor(approval, edit?.args ?? approval.args ?? {}, {
    send, close, json: false, keep: (/** @type {Record<string, unknown>} */ args) => edit && (edit.args = args),
  });
  editor.node.part = 'approval-edit';
  const { field, message } = edit?.wrong ?? {};
  queueMicrotask(() => (message ? editor.wrong(Object.assign(new Error(message), { field })) : editor.focus()));
  if (edit) delete edit.wrong;
  return make('div', { className: 'editing' }, editor.node);
}

export const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.edit { display: grid; gap: 12px; }
.edit dd { display: grid; gap: 4px; white-space: normal; }
.edit :is(input, select, textarea) { width: 100%; min-width: 0; font: inherit; color: inherit; background: var(--bg);
  border: 1px solid var(--dim);
  border-radius: 10px; padding: 8px 10px; min-height: 44px; max-height: 40vh; }
.edit textarea { resize: vertical; field-sizing: content; }
.edit input[type=checkbox] { width: 20px; min-height: 20px; }
.edit [aria-invalid=true] { border-color: var(--bad); }
.edit .error { margin: 0; border: 0; padding: 0; font-size: 13px; }
.edit .error:empty { display: none; }
.edit button { font-size: inherit; color: inherit; }
.edit .primary { background: var(--a); color: var(--on); border-color: var(--a); }
.edit .quiet-button { border-color: transparent; font-weight: 450; color: var(--dim); }
.edit .form { display: grid; gap: 6px; }
.edit .code { font: 13px/1.5 ui-monospace, monospace; }
.chips { display: flex; flex-wrap: wrap; gap: 6px; list-style: none; padding: 0; }
.chips:empty { display: none; }
.address { display: flex; align-items: center; gap: 4px; padding-left: 10px; border: 1px solid var(--line);
  border-radius: 10px; }
.address.wrong { border-color: var(--bad); }
.chip-drop { border: 0; }
.chip-field { display: grid; gap: 6px; }
`);
