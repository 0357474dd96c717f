// The console loads it at ./widget/client.js, where package web serves the widget's files.
export * from '../../widget/site/client.js';
