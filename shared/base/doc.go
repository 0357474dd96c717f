// Package base groups the packages that all others can use. They know nothing about runs, tools or users, and import
// only each other and libraries.
//
// Errors and texts:
//   - fault is the one error type: five classes, each with an HTTP status.
//   - clip shortens texts, visible makes them safe to read before a decision.
//   - address checks e-mail addresses, timezone checks names of time zones.
//
// Data from untrusted sources:
//   - strictjson decodes JSON, strictyaml the files that operators write.
//   - schema imports JSON Schemas that others wrote.
//
// The network and the machine:
//   - outbound has the HTTP transports for calls to other services, netguard decides which addresses may be dialled.
//   - subprocess starts programs, keyfile stores a server's keys in files, kmskey signs with Cloud KMS.
//   - wait waits for a time or the end of a context, memo keeps a bounded number of costly values, and lazyregexp
//     compiles a regular expression at its first use.
package base
