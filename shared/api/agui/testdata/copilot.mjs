// A page with the chat that README has, for TestCopilotKit.

import { createElement as h } from 'react';
import { createRoot } from 'react-dom/client';
import { Chat } from 'readme';

createRoot(document.getElementById('root')).render(h(Chat, window.chat));
