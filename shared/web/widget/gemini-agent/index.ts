// The plugin's exports, by the names that plugin.yaml gives them.
export { askAgent, COUNTERSIGN, sendMessage, submitToolResults, type Countersign } from './actions';
export { geminiChat } from './gemini-chat';
export { setupGeminiAgent } from './setup';
