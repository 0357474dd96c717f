// Package notify groups the packages that notify people and programs of runs that wait or have ended, without their
// content.
//   - event makes the notifications from the events of a run.
//   - webhook sends them to the operator's endpoints.
//   - devices shows them in people's browsers, by webpush.
//   - reminder sends e-mails about approvals that have waited for a while, by mailer.
package notify
