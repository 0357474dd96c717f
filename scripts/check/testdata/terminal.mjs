// Uses the view of terminals in Chromium. Run by TestTerminalView, on an API that says what this script tells it to.
// The steps follow one another on one page.

import { run } from './driver.mjs';
import { agent } from './terminal/agent.mjs';
import { elsewhere } from './terminal/elsewhere.mjs';
import { hosts } from './terminal/hosts.mjs';
import { list } from './terminal/list.mjs';
import { modules } from './terminal/modules.mjs';
import { reach } from './terminal/reach.mjs';
import { reuse } from './terminal/reuse.mjs';
import { sessions } from './terminal/sessions.mjs';
import { shell } from './terminal/shell.mjs';
import { transfer } from './terminal/transfer.mjs';

await run({ ...hosts, ...shell, ...agent, ...list, ...reuse, ...transfer, ...sessions, ...modules, ...reach,
  ...elsewhere }, { modules: true });
