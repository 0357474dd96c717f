// Makes pictures for the scripts that add files to requests.

import { crc32, deflateSync } from 'node:zlib';

/** png makes a picture that compresses badly, so that its size is about its pixels times three. */
export function png(width, height) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [size, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    size.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([size, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const rows = Buffer.alloc((width * 3 + 1) * height);
  for (let i = 0, x = 1; i < rows.length; i++) {
    x = (Math.imul(x, 1103515245) + 12345) & 0x7fffffff;
    rows[i] = i % (width * 3 + 1) ? x >> 16 : 0;
  }
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows, { level: 1 })), chunk('IEND', Buffer.alloc(0))]);
}
