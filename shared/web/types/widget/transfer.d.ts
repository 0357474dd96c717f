// The console bundles it from the widget's files.
export * from '../../widget/site/transfer.js';
