// Looks at each state of the console, of the widget and of the shop. Run by TestLooks.

import { run } from './driver.mjs';
import { desk } from './looks/desk.mjs';
import { files } from './looks/files.mjs';
import { memory } from './looks/memory.mjs';
import { records } from './looks/records.mjs';
import { talk } from './looks/talk.mjs';
import { work } from './looks/work.mjs';
import { elsewhere } from './looks/elsewhere.mjs';

await run({ ...talk, ...files, ...records, ...desk, ...memory, ...work, ...elsewhere }, { held: true });
