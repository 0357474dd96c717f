// Uses the console in Chromium as a newcomer would. Run by TestConsole, which says through the environment where the
// server, the browser, playwright-core and axe-core are. A line "restart" asks the test to kill the server with -9 and
// to start it again; the test answers with a line.

import { run } from './driver.mjs';
import { allowed } from './console/allowed.mjs';
import { answers } from './console/answers.mjs';
import { lost } from './console/lost.mjs';
import { newcomer } from './console/newcomer.mjs';
import { people } from './console/people.mjs';
import { records } from './console/records.mjs';

await run({ ...newcomer, ...lost, ...answers, ...allowed, ...records, ...people });
