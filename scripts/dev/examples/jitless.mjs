// Has zod check by its own code: it would make functions of strings otherwise, which the page's policy forbids. It is a
// module of its own, since it comes before those that declare anything.

import { config } from 'zod';

config({ jitless: true });
