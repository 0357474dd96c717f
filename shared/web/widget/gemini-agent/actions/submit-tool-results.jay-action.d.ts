export interface SubmitToolResultsInput {
  results: Array<{
      callId: string;
      result: string;
      isError?: boolean;
    }>;
  history: Array<Record<string, unknown>>;
  toolDefinitions: Array<{
      name: string;
      description: string;
      inputSchema: Record<string, unknown>;
      category: string;
    }>;
  pageState: Record<string, unknown>;
  messageId?: string;
  timeZone?: string;
  locale?: string;
}

export interface SubmitToolResultsOutput {
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