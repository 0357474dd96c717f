// What the page with useChat needs of npm, for site/usechat/libraries.js. TestLibrariesOfReleases makes
// it, and says how to renew it.

import './jitless.mjs';

export { createElement, useEffect, useState } from 'react';
export { createRoot } from 'react-dom/client';
export { useChat } from '@ai-sdk/react';
export { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
