// The plugin's exports, under the names in plugin.yaml.
export { askAgent, COUNTERSIGN, sendMessage, submitToolResults, type Countersign } from './actions';
export { geminiChat } from './gemini-chat';
export { setupGeminiAgent } from './setup';
