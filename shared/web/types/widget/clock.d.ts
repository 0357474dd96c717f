// The console loads it at ./widget/clock.js, where package web serves the widget's files.
export * from '../../widget/site/clock.js';
