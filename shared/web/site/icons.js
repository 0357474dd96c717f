// Icons.

const paths = {
  mail: 'M3 6h18v12H3zM3 7l9 6 9-6',
  calendar: 'M4 6h16v14H4zM4 10h16M8 3v5M16 3v5',
  tool: 'M13 3L5 13h6l-1 8 8-10h-6z',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  cross: 'M6 6l12 12M18 6L6 18',
  clock: 'M12 3a9 9 0 100 18 9 9 0 000-18zM12 7v5l3.5 2',
  alert: 'M12 4l9 16H3zM12 10v4M12 17v.1',
  inbox: 'M4 13l3-8h10l3 8v6H4zM4 13h5l1.5 3h3L15 13h5',
  record: 'M7 3h8l4 4v14H7zM10 11h6M10 15h6',
  link: 'M10 14a4 4 0 006 0l3-3a4 4 0 00-6-6l-1 1M14 10a4 4 0 00-6 0l-3 3a4 4 0 006 6l1-1',
  star: 'M12 4l2.4 5 5.6.7-4 3.9 1 5.4-5-2.6L7 19l1-5.4-4-3.9 5.6-.7z',
  box: 'M4 8l8-4 8 4v9l-8 4-8-4zM4 8l8 4 8-4M12 12v9',
  plus: 'M12 5v14M5 12h14',
  menu: 'M4 7h16M4 12h16M4 17h16',
  pencil: 'M4 20l1-4L16 5l3 3L8 19l-4 1M14 7l3 3',
  bin: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  plan: 'M4 6l1.5 1.5L8 5M4 12l1.5 1.5L8 11M4 18l1.5 1.5L8 17M11 6h9M11 12h9M11 18h9',
  prompt: 'M5 6l6 6-6 6M12 18h7',
  agent: 'M6 9h12v10H6zM12 5v4M9.5 13v2M14.5 13v2M3.5 12v4M20.5 12v4',
  clip: 'M20 11l-8.5 8.5a5 5 0 01-7-7L13 4a3.3 3.3 0 014.7 4.7l-8.5 8.5a1.7 1.7 0 01-2.4-2.4L14.5 7',
  note: 'M5 4h14v11l-5 5H5zM14 20v-5h5M9 9h6M9 13h3',
  spin: 'M12 3a9 9 0 109 9',
};

/** icon returns an icon, hidden from screen readers. @param {keyof typeof paths} name */
export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', `drawn drawn-${name}`);
  svg.setAttribute('aria-hidden', 'true');
  path.setAttribute('d', paths[name]);
  svg.append(path);
  return svg;
}

/** mark is the logo beside the name. */
export function mark() {
  const sign = icon('check');
  sign.classList.add('mark');
  return sign;
}
