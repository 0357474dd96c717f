import {HTMLElementCollectionProxy, HTMLElementProxy, JayContract} from "@jay-framework/runtime";


export enum Role {
  user,
  assistant,
  system
}

export interface MessageOfGeminiChatViewState {
  id: string,
  role: Role,
  content: string,
  timestamp: string
}

export interface ApprovalOfGeminiChatViewState {
  id: string,
  title: string,
  details: string,
  state: string
}

export interface GeminiChatViewState {
  messages: Array<MessageOfGeminiChatViewState>,
  isLoading: boolean,
  hasMessages: boolean,
  hasError: boolean,
  error: string,
  isExpanded: boolean,
  lastUserMessage: string,
  lastAssistantMessage: string,
  approvals: Array<ApprovalOfGeminiChatViewState>
}

export type GeminiChatSlowViewState = {};

export type GeminiChatFastViewState = Pick<GeminiChatViewState, 'isLoading' | 'hasMessages' | 'hasError' | 'error' | 'isExpanded' | 'lastUserMessage' | 'lastAssistantMessage'> & {
    messages: Array<GeminiChatViewState['messages'][number]>;
    approvals: Array<GeminiChatViewState['approvals'][number]>;
};

export type GeminiChatInteractiveViewState = Pick<GeminiChatViewState, 'isLoading' | 'hasMessages' | 'hasError' | 'error' | 'isExpanded' | 'lastUserMessage' | 'lastAssistantMessage'> & {
    messages: Array<GeminiChatViewState['messages'][number]>;
    approvals: Array<GeminiChatViewState['approvals'][number]>;
};


export interface GeminiChatRefs {
  messageInput: HTMLElementProxy<GeminiChatViewState, HTMLTextAreaElement>,
  sendMessage: HTMLElementProxy<GeminiChatViewState, HTMLButtonElement>,
  toggleExpand: HTMLElementProxy<GeminiChatViewState, HTMLButtonElement>,
  approvals: {
    approve: HTMLElementCollectionProxy<ApprovalOfGeminiChatViewState, HTMLButtonElement>,
    reject: HTMLElementCollectionProxy<ApprovalOfGeminiChatViewState, HTMLButtonElement>
  }
}


export interface GeminiChatRepeatedRefs {
  messageInput: HTMLElementCollectionProxy<GeminiChatViewState, HTMLTextAreaElement>,
  sendMessage: HTMLElementCollectionProxy<GeminiChatViewState, HTMLButtonElement>,
  toggleExpand: HTMLElementCollectionProxy<GeminiChatViewState, HTMLButtonElement>,
  approvals: {
    approve: HTMLElementCollectionProxy<ApprovalOfGeminiChatViewState, HTMLButtonElement>,
    reject: HTMLElementCollectionProxy<ApprovalOfGeminiChatViewState, HTMLButtonElement>
  }
}

export type GeminiChatContract = JayContract<GeminiChatViewState, GeminiChatRefs, GeminiChatSlowViewState, GeminiChatFastViewState, GeminiChatInteractiveViewState>