export interface SendMessageInput {
  message: string;
  history: Array<Record<string, unknown>>;
  toolDefinitions: Array<{
      name: string;
      description: string;
      inputSchema: Record<string, unknown>;
      category: string;
    }>;
  pageState: Record<string, unknown>;
  agent?: string;
  messageId?: string;
  timeZone?: string;
  locale?: string;
}

export interface SendMessageOutput {
  type: string;
  message?: string;
  calls?: Array<{
      id: string;
      name: string;
      args: Record<string, unknown>;
      category: string;
      approval?: Record<string, unknown>;
      runId?: string;
    }>;
  actions?: Array<{
      name: string;
      runId: string;
      ok: boolean;
    }>;
  history: Array<Record<string, unknown>>;
}