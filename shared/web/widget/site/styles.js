// The styles. Every colour is a custom property that the page can set on gemini-chat. The internal names are set inside
// the shadow root, so they override none of the page's.

export const sheet = new CSSStyleSheet();
sheet.replaceSync(`
:host { display: block; width: min(100%, 420px); min-width: 0; color-scheme: light dark; }
.chat, .launch, .tip { --a: var(--gemini-chat-accent, light-dark(#3f4fd1, #aab4ff));
  --on: var(--gemini-chat-on-accent, light-dark(#fff, #14172e));
  --bg: var(--gemini-chat-background, light-dark(#fff, #16181f));
  --fg: var(--gemini-chat-text, light-dark(#1b1d28, #eceef6));
  --dim: var(--gemini-chat-muted, light-dark(#5a5f73, #a3a9bd));
  --line: var(--gemini-chat-border, light-dark(#e2e4ec, #2e323f));
  --soft: var(--gemini-chat-soft, light-dark(#f4f5f9, #20232d));
  --bad: var(--gemini-chat-error, light-dark(#b3261e, #ffb4ab));
  --warn: var(--gemini-chat-warning, light-dark(#8a4b00, #ffc27a));
  --r: var(--gemini-chat-radius, 18px);
  color: var(--fg); font: 15px/1.55 var(--gemini-chat-font, system-ui, sans-serif); }
:host([hidden]), [hidden] { display: none !important; }
* { box-sizing: border-box; margin: 0; overflow-wrap: anywhere; }
:host([launcher]:not([open])) .chat { display: none; }
.chat { display: flex; flex-direction: column; background: var(--bg); border: 1px solid var(--line);
  border-radius: var(--r); overflow: hidden;
  box-shadow: 0 1px 2px #10142814, 0 12px 32px -8px #10142824; max-height: var(--gemini-chat-height, min(640px, 85vh));
  }
header { display: flex; align-items: center; gap: 4px; padding: 10px 10px 10px 18px; }
h2 { flex: 1; font-size: 15px; font-weight: 650; letter-spacing: -.01em; }
.scroll { overflow-y: auto; flex: 1 1 auto; min-height: 0; padding: 4px 18px 8px; scrollbar-width: thin; }
.messages { display: flex; flex-direction: column; gap: 14px; list-style: none; padding: 0; }
.user { align-self: flex-end; max-width: 85%; background: var(--a); color: var(--on); padding: 8px 14px;
  border-radius: 16px 16px 4px 16px; white-space: pre-wrap; }
.assistant { display: flex; flex-direction: column; gap: 8px; max-width: 100%; }
.messages + .assistant { margin-top: 14px; }
.assistant p { white-space: pre-line; }
.assistant :is(ul, ol) { padding-left: 22px; }
.assistant a { color: var(--a); }
.record { color: var(--dim); font-size: 13px; }
.system { color: var(--dim); font-size: 13px; align-self: center; text-align: center; }
code { font: .9em ui-monospace, monospace; background: var(--soft); border-radius: 5px; padding: 1px 5px; }
pre { overflow-x: auto; background: var(--soft); border-radius: 10px; padding: 10px 12px; white-space: pre; }
pre code { padding: 0; }
.hint { color: var(--dim); padding: 6px 0 10px; }
.status { display: flex; align-items: center; gap: 10px; color: var(--dim); font-size: 13px; padding: 10px 18px 0; }
.status::before { content: ''; width: 8px; height: 8px; border-radius: 50%; background: var(--a);
  animation: breathe 1.2s ease-in-out infinite alternate; }
@keyframes breathe { from { opacity: .25; } }
.note { color: var(--dim); font-size: 13px; margin: 10px 18px 0; }
.note:empty { display: none; }
.error, .warning { border-radius: 12px; padding: 10px 12px; font-size: 14px; border: 1px solid; }
.error { color: var(--bad); margin: 10px 18px 0; display: flex; flex-wrap: wrap; gap: 8px; align-items: center;
  justify-content: space-between; }
.composer { display: flex; align-items: flex-end; gap: 8px; margin: 12px; padding: 6px; background: var(--soft);
  border: 1px solid var(--line); border-radius: calc(var(--r) - 4px); }
.composer:focus-within { border-color: var(--a); box-shadow: 0 0 0 1px var(--a); }
.composer .quiet { font-size: 20px; padding: 0 10px; }
.sent { font-size: 13px; border-top: 1px solid; margin-top: 6px; padding-top: 4px; opacity: .85; }
.composer textarea { flex: 1; min-width: 0; resize: none; border: 0; outline: 0; background: none; color: inherit;
  font: inherit; padding: 6px 8px; max-height: 9.5em; field-sizing: content; }
.composer textarea::placeholder { color: var(--dim); opacity: 1; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; }
button { font: inherit; font-weight: 550; color: inherit; background: none; border: 1px solid var(--line);
  border-radius: 11px; padding: 6px 14px; min-height: 36px; cursor: pointer; }
button:hover { border-color: currentColor; }
button.main { background: var(--a); color: var(--on); border-color: var(--a); }
button.quiet { border-color: transparent; font-size: 13px; font-weight: 450; color: var(--dim); padding: 6px 10px; }
button:is(:disabled, [aria-disabled=true]) { opacity: .55; cursor: default; }
:focus-visible { outline: 2px solid var(--a); outline-offset: 2px; }
.composer textarea:focus-visible { outline: 0; }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (pointer: coarse), (max-width: 480px) {
  button, .composer textarea { min-height: 44px; }
  button { min-width: 44px; }
}
@media (prefers-reduced-motion: reduce) {
  *, *::before, *::after { animation: none !important; scroll-behavior: auto !important; }
}
@media (forced-colors: active) {
  .user, .card, .chat, button.main { border: 1px solid; }
  button.main { border-width: 2px; }
  .composer:focus-within { outline: 2px solid Highlight; }
  .status::before { background: CanvasText; }
}
`);
