// Package notify groups what tells people and programs that a run waits or has ended, without its content.
//   - notice makes the notifications from the events of a run.
//   - webhook sends them to the operator's endpoints.
//   - devices shows them in people's browsers, by webpush.
//   - reminder mails people what has waited for a while, by mailer.
package notify
