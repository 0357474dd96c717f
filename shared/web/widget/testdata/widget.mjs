// Uses the chat on a page of another origin in Chromium. Run by TestWidget, which passes the places of the server, the
// browser and its driver in the environment.

import { run } from '../../../testkit/browsertest/driver.mjs';
import { approvals } from './approvals.mjs';
import { files } from './files.mjs';
import { pages } from './pages.mjs';
import { policy } from './policy.mjs';
import { shapes } from './shapes.mjs';
import { talk } from './talk.mjs';
import { trouble } from './trouble.mjs';
import { visit } from './chat.mjs';

await run({ ...talk, ...approvals, ...trouble, ...files, ...pages, ...policy, ...shapes }, await visit());
