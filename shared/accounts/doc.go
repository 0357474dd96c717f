// Package accounts groups the packages for identities: callers, and the accounts in which an agent acts.
//   - auth authenticates callers, agenttoken the agents of other programs.
//   - linking manages the accounts that users have linked, with the differences between providers in google and github.
//   - tokenkey provides the cipher for users' secrets.
package accounts
