// The chat as a headless component: the widget's own conversation (../site/chat.js), which sends its requests through
// this plugin's actions.
import { createSignal } from '@jay-framework/component';
import { makeJayStackComponent, phaseOutput } from '@jay-framework/fullstack-component';
import { GeminiChat } from '../site/chat.js';
import { over, pause } from '../site/client.js';
import { askAgent, sendMessage, submitToolResults } from './actions';
import type { GeminiChatContract, GeminiChatViewState } from './gemini-chat.jay-contract';

const roles = ['user', 'assistant', 'system']; // in the contract's order

/** The state that the chat shows. */
export function view(chat: GeminiChat): GeminiChatViewState {
  return {
    messages: chat.messages.map((m) => ({ ...m, role: roles.indexOf(m.role) })),
    isLoading: chat.isLoading, hasMessages: chat.hasMessages, hasError: chat.hasError, error: chat.error, isExpanded: chat.isExpanded,
    lastUserMessage: chat.lastUserMessage, lastAssistantMessage: chat.lastAssistantMessage,
    approvals: chat.approvals.map(({ approval, state, error }) => ({
      id: approval.approvalId, title: approval.preview.title, state: error || state,
      details: [...(approval.preview.fields ?? []).map((f) => `${f.label}: ${f.value}`), ...(approval.preview.warnings ?? [])].join('\n'),
    })),
  };
}

/** The connection to Countersign through the project's server. */
export const transport = {
  chat: (path: string, body: any) => (path.endsWith('/results') ? submitToolResults(body) : sendMessage(body)),
  ask: (method: string, path: string, body?: any) => askAgent({ method, path, body }),
  /** Yields the updates of a run until it has ended. An action answers only once, so the run is polled. */
  async* events(runId: string, signal: AbortSignal) {
    for (let wait = 500; ; wait = Math.min(wait * 1.6, 15000)) {
      const run: any = await askAgent({ method: 'GET', path: `/api/agent/runs/${encodeURIComponent(runId)}` });
      yield { type: 'run', run };
      if (over(run.status)) return;
      await pause(wait, signal);
    }
  },
};

/** The page's own automation, if it has one. */
async function page() {
  const { asAutomation, buildTools } = await import('../site/automation.js');
  const automation = asAutomation((window as any).__jay?.automation);
  return automation && { automation, buildTools };
}

export function conversation(): GeminiChat {
  const chat = new GeminiChat({ endpoint: () => '', token: async () => '', page });
  return Object.assign(chat, { transport });
}

export const geminiChat = makeJayStackComponent<GeminiChatContract>()
  .withProps<{}>()
  .withFastRender(async () => phaseOutput(view(conversation()), {}))
  .withInteractive((_props, refs) => {
    const chat = conversation();
    const [shown, show] = createSignal(view(chat));
    chat.addEventListener('change', () => show(view(chat)));
    refs.messageInput.oninput(({ event }) => { chat.messageInput = (event.target as HTMLTextAreaElement).value; });
    refs.sendMessage.onclick(() => { chat.sendMessage(); });
    refs.toggleExpand.onclick(() => chat.toggleExpand());
    refs.approvals.approve.onclick(({ viewState }) => { void chat.decide(viewState.id, 'approve_once'); });
    refs.approvals.reject.onclick(({ viewState }) => { void chat.decide(viewState.id, 'reject'); });
    const of = <K extends keyof GeminiChatViewState>(name: K) => () => shown()[name];
    return {
      render: () => ({
        messages: of('messages'), isLoading: of('isLoading'), hasMessages: of('hasMessages'), hasError: of('hasError'), error: of('error'), isExpanded: of('isExpanded'),
        lastUserMessage: of('lastUserMessage'), lastAssistantMessage: of('lastAssistantMessage'), approvals: of('approvals'),
      }),
    };
  });
